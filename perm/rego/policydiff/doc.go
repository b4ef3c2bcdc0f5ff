// Package policydiff searches requests that two policies decide differently. It
// builds requests from the conditions of the rules of both policies, decides
// each by both, and makes each counterexample small. It finds differences and
// proves nothing: no difference found means that these requests show none.
package policydiff
