// glibc's, which the module Glibc leaves out.
#if __has_include(<malloc.h>)
#include <malloc.h>
#endif
