// Package state selects a workspace, its state folder and everything that flags
// say about them: roots, databases, services and tool declarations. It opens
// the journal and checks that it belongs to the workspace.
package state
