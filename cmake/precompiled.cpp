// Carries the precompiled headers of tutti_precompiled.cmake, and nothing else.
