// Package policyfile loads the policy that a command line names, warns of its
// mistakes, and asks a person before a call changes its files.
package policyfile
