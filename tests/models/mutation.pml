// Which mutation is in force; 0: none. check_models.py sets it, so one executable runs them all.
c_decl {
  \#include <stdlib.h>
}
hidden byte mutation;
inline choose_mutation() {
  c_code { mutation = getenv("MUTATION") ? atoi(getenv("MUTATION")) : 0; }
}
