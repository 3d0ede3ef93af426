# tutti_parsers: what reads bytes from outside, and what that needs. Rooms that are needed nearly
# whole, and single files of the others.
set(sources
  group/agreement.cpp
  drivers/host_files.cpp
  drivers/processes.cpp
  drivers/shared_memory.cpp
  drivers/socket_address.cpp
  drivers/sockets.cpp
  executors/network/deadlines.cpp
  executors/network/engine.cpp
  executors/network/message.cpp
  executors/network/partitions.cpp
  executors/network/running_operation.cpp
  executors/network/sending.cpp
  matmul/arrival_trace.cpp
  matmul/arrival_trace_json.cpp
  matmul/arrival_transport.cpp
  memory/heap_messages.cpp
  memory/pool.cpp
  group/recorder/snapshot.cpp
  pipelines/program.cpp
  topology/json.cpp
  topology/reach.cpp
  topology/text.cpp)
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/src/)
list(APPEND sources
  ${PROJECT_SOURCE_DIR}/tools/cli/bench/measurement.cpp
  ${PROJECT_SOURCE_DIR}/tools/cli/bench/record_json.cpp
  ${PROJECT_SOURCE_DIR}/tools/cli/model/links_json.cpp
  ${PROJECT_SOURCE_DIR}/tools/cli/run/wire.cpp)
list(APPEND sources ${PROJECT_SOURCE_DIR}/tests/fakes/fake_sockets.cpp)

# The catalogue without its bodies, which nobody runs.
include(${PROJECT_SOURCE_DIR}/src/algorithms/algorithms.cmake)
tutti_no_entries(no_bodies.cpp HOST)
list(APPEND sources ${CMAKE_CURRENT_BINARY_DIR}/no_bodies.cpp)

foreach(room base bootstrap planning device algorithms)
  list(APPEND sources $<TARGET_OBJECTS:tutti_${room}>)
endforeach()

add_library(tutti_parsers STATIC ${sources})
target_include_directories(tutti_parsers PUBLIC ${PROJECT_SOURCE_DIR}/tools/cli
  ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(tutti_parsers
  PUBLIC tutti_flags fmt::fmt nlohmann_json::nlohmann_json Threads::Threads)
tutti_by_folder(tutti_parsers)
