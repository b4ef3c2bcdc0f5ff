package perm

import "fmt"

// Action is what an access does to a resource.
type Action string

// The actions. A move is Delete of one resource and Write of another; an HTTP
// POST is Connect with its method in the access; DDL is Write on the database.
const (
	Read      Action = "read"    // look at the content of a resource
	List      Action = "list"    // look at the names below a resource
	Write     Action = "write"   // create or change a resource
	Delete    Action = "delete"  // remove a resource
	Execute   Action = "execute" // run a program
	Connect   Action = "connect" // talk to a network service
	Use       Action = "use"     // use a secret without seeing it
	Call      Action = "call"    // call a tool as such
	AskClient Action = "ask"     // have the client of a call ask a person or its model
)

// actions lists every action, in the order in which documents name them.
func actions() []Action {
	return []Action{Read, List, Write, Delete, Execute, Connect, Use, Call, AskClient}
}

// Valid reports whether a is one of the actions of this package.
func (a Action) Valid() bool {
	switch a {
	case Read, List, Write, Delete, Execute, Connect, Use, Call, AskClient:
		return true
	default:
		return false
	}
}

// Observes reports whether a only looks: it changes nothing that an undo would
// have to take back.
func (a Action) Observes() bool { return a == Read || a == List || a == AskClient }

// Changes reports whether a changes a resource: a call without effects does not do it.
func (a Action) Changes() bool { return a == Write || a == Delete }

// UnmarshalText accepts the names of the actions and nothing else.
func (a *Action) UnmarshalText(text []byte) error {
	if v := Action(text); v.Valid() {
		*a = v
		return nil
	}
	return fmt.Errorf("unknown action; valid are %v", actions())
}
