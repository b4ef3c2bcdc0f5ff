// Package approve has the verbs of a person who decides: pending, approve,
// deny, settle, approval and grants.
package approve
