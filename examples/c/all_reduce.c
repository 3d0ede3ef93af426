/* The sum over all ranks, in plain C. Without an argument each process is one rank:
 *   mpirun -n 2 c_all_reduce        (or tutti run, torchrun --no-python, srun)
 * With an argument, so many ranks are threads of this process:
 *   c_all_reduce 2
 */
#include <tutti/tutti.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { kCount = 1000, kMostThreads = 16 };

static void check(tutti_status_t status) {
  if (status == TUTTI_OK) return;
  fprintf(stderr, "%s: %s\n", tutti_status_name(status), tutti_last_error());
  exit(1);
}

/* Every rank calls this: as a process, or on a thread of its own. */
static void* run(void* argument) {
  tutti_communicator_t* group = argument;
  tutti_communicator_info_t info = tutti_communicator_info_init();
  tutti_memory_info_t memory_info = tutti_memory_info_init();
  tutti_memory_t* memory;
  tutti_all_reduce_t call = tutti_all_reduce_init();

  check(tutti_communicator_info(group, &info));
  check(
      tutti_memory_allocate(group, kCount * sizeof(float), &memory)); /* zero-copy for all ranks */
  check(tutti_memory_info(memory, &memory_info));
  float* data = memory_info.data; /* on GPUs: device memory */
  for (int i = 0; i < kCount; ++i) data[i] = (float)(info.rank + 1);

  call.input = call.output = data; /* in place */
  call.count = kCount;
  check(tutti_all_reduce(group, &call));
  printf("rank %d of %d: %g\n", info.rank, info.ranks, (double)data[kCount - 1]);

  check(tutti_memory_free(memory));
  check(tutti_communicator_destroy(group));
  return NULL;
}

int main(int argument_count, char** arguments) {
  tutti_communicator_options_t options = tutti_communicator_options_init();
  options.backend = TUTTI_BACKEND_HOST;

  if (argument_count < 2) {
    tutti_communicator_t* group;
    check(tutti_communicator_create_from_environment(&options, &group));
    run(group);
    return 0;
  }

  tutti_communicator_t* groups[kMostThreads];
  pthread_t threads[kMostThreads];
  const int ranks = atoi(arguments[1]);
  if (ranks < 1 || ranks > kMostThreads) {
    fprintf(stderr, "1 to %d threads\n", kMostThreads);
    return 1;
  }
  check(tutti_communicator_create_in_process(NULL, ranks, &options, groups));
  for (int r = 0; r < ranks; ++r) {
    if (pthread_create(&threads[r], NULL, run, groups[r]) != 0) return 1;
  }
  for (int r = 0; r < ranks; ++r) pthread_join(threads[r], NULL);
  return 0;
}
