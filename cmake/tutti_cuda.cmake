# Decides whether the CUDA backend is built: TUTTI_WITH_CUDA. Needs nvcc; no GPU and no driver.
include(tutti_architectures)
set(TUTTI_WITH_CUDA OFF)

# nvcc is looked for where toolkits put it, not on PATH alone.
function(tutti_find_nvcc)
  if(CMAKE_CUDA_COMPILER OR DEFINED ENV{CUDACXX})
    return()
  endif()
  find_program(TUTTI_NVCC nvcc
    HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
  mark_as_advanced(TUTTI_NVCC)
  if(TUTTI_NVCC)
    set(CMAKE_CUDA_COMPILER ${TUTTI_NVCC} PARENT_SCOPE)
  endif()
endfunction()

if(NOT TUTTI_CUDA STREQUAL "OFF")
  include(CheckLanguage)
  tutti_find_nvcc()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    tutti_architectures(CMAKE_CUDA_ARCHITECTURES ${TUTTI_CUDA_ARCHITECTURES})
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has it
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_STANDARD_REQUIRED ON)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    if(CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.8)  # older ones do not know it
      set(TUTTI_CUDA_COMPRESSION --compress-mode=size)
    endif()
    set(TUTTI_WITH_CUDA ON)
    message(STATUS "tutti: CUDA backend for ${CMAKE_CUDA_ARCHITECTURES}")
  elseif(TUTTI_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TUTTI_CUDA=ON, but no nvcc was found. Put it on PATH, set CUDACXX, or "
                        "configure with -DTUTTI_CUDA=OFF for the host backend alone.")
  endif()
endif()
if(NOT TUTTI_WITH_CUDA)
  message(STATUS "tutti: host backend only")
endif()

# For rooms with kernels.
set(tutti_sample $<$<BOOL:${TUTTI_SAMPLE_KERNELS}>:TUTTI_SAMPLE_KERNELS=1>)
