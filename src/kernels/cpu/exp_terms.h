/* exp_terms.h - e^x for vectors: x = n ln 2 + r, |r| <= ln 2 / 2, e^x = 2^n e^r.
 *
 * e^r = 1 + r + r^2 (C2 + C3 r + C4 r^2 + C5 r^3 + C6 r^4), fitted to the least largest relative
 * error: 3.1e-9, a fortieth of a float's last bit. ln 2 comes in two parts, the first with so few
 * bits that n times it is exact. Beyond LEAST and MOST the result is 0 and infinity. */
#ifndef KERNELS_CPU_EXP_TERMS_H
#define KERNELS_CPU_EXP_TERMS_H

#define EXP_LEAST    (-104.0f)
#define EXP_MOST     89.0f
#define EXP_LOG2E    1.44269504088896341f
#define EXP_LN2_HIGH 0.693359375f
#define EXP_LN2_LOW  (-2.12194440e-4f)
#define EXP_C2       0.4999999341250114f
#define EXP_C3       0.1666652010781902f
#define EXP_C4       0.04166839421098916f
#define EXP_C5       0.00836878041123883f
#define EXP_C6       0.0013814467054501737f

/* The approximation of GELU by tanh: sqrt(2 / pi), and the weight of the cube. */
#define GELU_LINEAR 0.7978845608028654f
#define GELU_CUBIC  0.044715f

#endif
