// Package approve has the verbs of a person who decides: pending, approve,
// deny, resolve, approval and grants.
package approve
