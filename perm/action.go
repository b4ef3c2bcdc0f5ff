package perm

import "fmt"

// Action is what an access does to a resource.
type Action string

// The actions. A move is Delete of one resource and Write of another. An HTTP
// POST is Connect with its method in the access. DDL is Write on the database.
const (
	Read      Action = "read"    // read the content of a resource
	List      Action = "list"    // list the names below a resource
	Write     Action = "write"   // create or change a resource
	Delete    Action = "delete"  // remove a resource
	Execute   Action = "execute" // run a program
	Connect   Action = "connect" // connect to a network service
	Use       Action = "use"     // use a secret without reading it
	Call      Action = "call"    // call a tool
	AskClient Action = "ask"     // let the client of a call ask a person or its model
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

// Observes reports whether a changes nothing that a revert must restore.
func (a Action) Observes() bool { return a == Read || a == List || a == AskClient }

// Changes reports whether a changes a resource. A call without effects never
// does this.
func (a Action) Changes() bool { return a == Write || a == Delete }

// UnmarshalText accepts the names of the actions and nothing else.
func (a *Action) UnmarshalText(text []byte) error {
	if v := Action(text); v.Valid() {
		*a = v
		return nil
	}
	return fmt.Errorf("unknown action; valid are %v", actions())
}
