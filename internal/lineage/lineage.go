package lineage

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrUnknown means that this system does not report the parents of processes.
var ErrUnknown = errors.New("this system does not tell which process started which")

// Process is one living process. PID and Start identify it until the machine
// restarts.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // in ticks since the machine started
	Name  string `json:"name"`  // chosen by the process: for people, it proves nothing
}

// AskingProcess is the process that asked for an approval, with its parents that act
// for the same agent.
type AskingProcess struct {
	Boot       string    `json:"boot"`              // identifies this run of the machine
	Namespaces string    `json:"namespaces"`        // namespaces of the process IDs
	Group      string    `json:"group"`             // digest of the control groups of the first process
	Loose      bool      `json:"loose,omitempty"`   // its parent has ended or is a process manager, so an agent above it could not be found
	Processes  []Process `json:"processes"`         // the one that asked, then its parent, and so on
	Unknown    string    `json:"unknown,omitempty"` // why nothing could be determined
}

// Link is one process of a Chain.
type Link struct {
	Process

	Parent   int    `json:"parent"`
	Job      int    `json:"job"` // process group: that of a pipeline, if a shell started it
	Session  int    `json:"session"`
	UID      int    `json:"uid"`
	Terminal bool   `json:"terminal"` // it has a controlling terminal
	Jobs     bool   `json:"jobs"`     // it ignores the signals that an interactive shell ignores
	Group    string `json:"group"`    // digest of its control groups
}

// Chain is a process, its parent and so on, up to the first visible process.
type Chain struct {
	Boot       string `json:"boot"`
	Namespaces string `json:"namespaces"`
	Links      []Link `json:"links"`
}

// person reports whether a process is a shell that a person types into: the
// processes above it act for no agent.
func (l Link) person() bool { return l.Terminal && l.Jobs }

// adopts reports whether a process becomes the parent of orphans.
func (l Link) adopts() bool { return l.PID == 1 || l.Parent == 1 && l.Name == "systemd" }

// serves reports whether a process is a service manager. The first process of a
// container can be an agent at a terminal.
func (l Link) serves() bool { return l.adopts() && !l.Terminal }

// AskingProcess returns the record of an asking process: the process, and those above
// it below the shell of a person. If there is no such shell, as below a desktop
// or a service manager, it includes those of the same user and control groups.
func (c Chain) AskingProcess() AskingProcess {
	if len(c.Links) == 0 {
		return AskingProcess{}
	}
	first, loose := c.Links[0], false
	other := func(l Link) bool { return l.UID != first.UID }
	end := c.belowPerson(slices.IndexFunc(c.Links, other))
	if end < 0 {
		end = c.belowPerson(len(c.Links))
	}
	if end < 0 {
		end = slices.IndexFunc(c.Links[1:], func(l Link) bool { return l.serves() || other(l) || l.Group != first.Group })
		loose = end >= 0 && c.Links[end+1].serves() || end < 0 && c.Links[len(c.Links)-1].Parent == 1
	}
	if end < 0 {
		end = len(c.Links) - 1
	}
	a := AskingProcess{Boot: c.Boot, Namespaces: c.Namespaces, Group: first.Group, Loose: loose}
	for _, l := range c.Links[:end+1] {
		a.Processes = append(a.Processes, l.Process)
	}
	return a
}

// belowPerson returns the index of the process just below the shell of a
// person, among the first n links, or a negative number if there is none. It
// uses the topmost such shell: an agent can start one below itself. A shell
// that was started directly in that one belongs to the same person.
func (c Chain) belowPerson(n int) int {
	if n < 0 {
		n = len(c.Links)
	}
	for i := n - 1; i > 0; i-- {
		if !c.Links[i].person() {
			continue
		}
		for i > 1 && c.Links[i-1].person() {
			i--
		}
		return i - 1
	}
	return -1
}

// Record returns the record of the asking process for a call that waits, or nil
// on a system without this information.
func Record() json.RawMessage {
	c, err := Own()
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	a := c.AskingProcess()
	if err != nil {
		a = AskingProcess{Processes: []Process{}, Unknown: err.Error()}
	}
	text, err := json.Marshal(a)
	if err != nil {
		return json.RawMessage(`{"unknown":"it cannot be recorded"}`)
	}
	return text
}

// Bars returns why a process with the chain c must not answer a request of a,
// or "" if it may.
func (a AskingProcess) Bars(c Chain) string {
	switch {
	case a.Unknown != "":
		return "the process that asked is unknown: " + a.Unknown
	case len(a.Processes) == 0:
		return ""
	case len(c.Links) == 0:
		return "the parents of this process are unknown"
	case a.Boot != c.Boot: // the machine was restarted: no process descends from those before
		return ""
	case a.Namespaces != c.Namespaces:
		return "this process and the one that asked run in different containers or namespaces, so they cannot be compared"
	}
	for i, p := range a.Processes {
		above := func(l Link) bool { return l.PID == p.PID && l.Start == p.Start }
		switch did := map[bool]string{true: "asked", false: "started the one that asked"}[i == 0]; {
		case slices.ContainsFunc(c.Links, above):
			return fmt.Sprintf("this process was started below %s (process %d), which %s", p.Name, p.PID, did)
		case c.Links[0].Job == p.PID || c.Links[0].Session == p.PID:
			return fmt.Sprintf("this process runs in the job or the session of %s (process %d), which %s", p.Name, p.PID, did)
		}
	}
	if l, loose := c.loose(a); loose {
		return fmt.Sprintf("%s (process %d), above this process, began after %s and its parents cannot be checked", l.Name, l.PID, a.oldest().Name)
	}
	if a.Loose && c.Links[0].Group == a.Group {
		return c.below(a.Processes[0])
	}
	return ""
}

// oldest returns the process that began first among those that act for the
// agent.
func (a AskingProcess) oldest() Process {
	return slices.MinFunc(a.Processes, func(p, q Process) int { return cmp.Compare(p.Start, q.Start) })
}

// below returns the name of a process of the chain that can be an agent that
// started and then detached the asking process. It returns "" for a chain of a
// person's shells and processes of other users. A shell that lost its parent is
// not a person's: a program can hold a terminal by itself and imitate one.
func (c Chain) below(asked Process) string {
	n := slices.IndexFunc(c.Links, func(l Link) bool { return l.UID != c.Links[0].UID })
	if n < 0 {
		n = len(c.Links)
	}
	login := func(i int) bool { // the process of this user that sshd, which runs as another user, started
		return i == n-1 && n < len(c.Links) && strings.HasPrefix(c.Links[i].Name, "sshd")
	}
	for i, l := range c.Links[:n] {
		if i > 0 && (!l.person() || c.orphan(i)) && l.Parent != 0 && !login(i) {
			return fmt.Sprintf("what started %s (process %d), which asked, cannot be checked, and it can be %s (process %d), above this process",
				asked.Name, asked.PID, l.Name, l.PID)
		}
	}
	return ""
}

// orphan reports whether a process manager adopted a process of the chain. The
// first process of a container can start a shell in its own session.
func (c Chain) orphan(i int) bool {
	if i+1 == len(c.Links) {
		return c.Links[i].Parent == 1
	}
	return c.Links[i+1].adopts() && c.Links[i+1].Session != c.Links[i].Session
}

// loose finds the topmost process of the chain that detached from its parents
// after a asked, in the control groups of a.
func (c Chain) loose(a AskingProcess) (top Link, loose bool) {
	own := c.Links[0]
	i := slices.IndexFunc(c.Links, func(l Link) bool { return l.UID != own.UID || l.adopts() })
	switch {
	case i == 0:
		return own, false
	case i < 0: // the first visible process
		top = c.Links[len(c.Links)-1]
		return top, top.Parent == 1 && top.Start >= a.oldest().Start && top.Group == a.Group
	}
	top, above := c.Links[i-1], c.Links[i]
	if !above.adopts() || above.person() && above.Session == own.Session {
		return top, false // a login; or a shell that is the first process of its container, at its own terminal
	}
	return top, top.Start >= a.oldest().Start && top.Group == a.Group
}
