// Package perm is the vocabulary of permission. A Principal requests an Action
// on a Resource, together a ResourceAccess. A Request adds the facts around it,
// and a Decision is the result. An Engine decides. Package perm/rego holds the
// engine for policies written in Rego.
//
// Values that carry authority (Set, Decision) have no exported fields and
// refuse when zero: the zero Decision denies, the zero Set covers nothing. All
// other types are plain data. They travel by value and marshal to the JSON that
// policies, the journal and people see.
package perm
