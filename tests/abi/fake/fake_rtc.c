/* fake_rtc.c - a libhiprtc of one function. */
#include "hip/hip_types.h"

__attribute__((visibility("default"))) hiprtcResult hiprtcVersion(int *major, int *minor);

hiprtcResult hiprtcVersion(int *major, int *minor) {
    *major = 7;
    *minor = 1;
    return HIPRTC_SUCCESS;
}
