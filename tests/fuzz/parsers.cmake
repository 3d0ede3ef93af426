# tutti_parsers: what reads bytes from outside, and what that needs. Rooms that are needed nearly
# whole, and single files of the others.
set(sources
  drivers/fake_sockets.cpp
  drivers/host_files.cpp
  drivers/shared_memory.cpp
  drivers/socket_address.cpp
  drivers/sockets.cpp
  memory/heap_messages.cpp
  memory/pool.cpp
  recorder/snapshot.cpp
  topology/json.cpp
  topology/text.cpp)
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/src/)
list(APPEND sources
  ${PROJECT_SOURCE_DIR}/tools/cli/bench/measurement.cpp
  ${PROJECT_SOURCE_DIR}/tools/cli/bench/record_json.cpp)
foreach(room base bootstrap tuning transport algorithms dispatch)
  list(APPEND sources $<TARGET_OBJECTS:tutti_${room}>)
endforeach()

add_library(tutti_parsers STATIC ${sources})
target_include_directories(tutti_parsers PUBLIC ${PROJECT_SOURCE_DIR}/tools/cli)
target_link_libraries(tutti_parsers
  PUBLIC tutti_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
