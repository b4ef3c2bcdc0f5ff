// Package policy has the verbs that write, check, test and ask policies.
package policy
