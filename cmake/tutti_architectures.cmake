# Which GPU architectures nvcc compiles for.

# tutti_native_architectures(OUT): those of the GPUs here, "90a" for a Hopper; "90a" if nvidia-smi shows no
# GPU that tutti supports. From 9.0 on the kernels need architecture-specific code, which CMake's own
# `native` does not select.
function(tutti_native_architectures out)
  find_program(TUTTI_NVIDIA_SMI nvidia-smi)
  mark_as_advanced(TUTTI_NVIDIA_SMI)
  set(found)
  if(TUTTI_NVIDIA_SMI)
    execute_process(COMMAND ${TUTTI_NVIDIA_SMI} --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE capabilities ERROR_QUIET)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" capabilities "${capabilities}")
    foreach(capability ${capabilities})
      string(REPLACE "." "" architecture ${capability})
      if(capability VERSION_GREATER_EQUAL 9.0)
        list(APPEND found ${architecture}a)
      elseif(capability VERSION_GREATER_EQUAL 8.0)
        list(APPEND found ${architecture})
      endif()
    endforeach()
    list(REMOVE_DUPLICATES found)
  endif()
  if(NOT found)
    set(found 90a)
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# tutti_architectures(OUT ARCHITECTURE...): as CMAKE_CUDA_ARCHITECTURES has them. Architecture-specific code
# ("90a") has no portable form, so it is machine code alone; others keep PTX.
function(tutti_architectures out)
  set(all)
  foreach(architecture ${ARGN})
    if(architecture STREQUAL "native")
      tutti_native_architectures(here)
      tutti_architectures(architecture ${here})
    elseif(architecture MATCHES "^[0-9]+[af]$")
      string(APPEND architecture "-real")
    endif()
    list(APPEND all ${architecture})
  endforeach()
  set(${out} ${all} PARENT_SCOPE)
endfunction()
