// Package perm is the vocabulary of permission: who asks (Principal), for what
// (Action on a Resource, together a ResourceAccess), with which facts around it
// (Request), and what was answered (Decision). An Engine answers; package
// perm/rego holds the one that asks policies written in Rego.
//
// Values that carry authority (Set, Decision) have no exported fields and
// refuse when zero: the zero Decision denies, the zero Set covers nothing.
// Everything else is plain data that travels by value and marshals to the JSON
// that policies, the journal and people see.
package perm
