// `tutti doctor`.
#pragma once

namespace tutti::cli {

struct DoctorArguments {
  bool json = false;
};

// 0 where nothing is broken, else 1.
int run_doctor(const DoctorArguments& arguments);

}  // namespace tutti::cli
