package reverttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// faultPoint is a kind of point at which a fault can happen.
type faultPoint uint8

const (
	wrote    faultPoint = iota // a write of the journal or the disk
	point                      // before an action of the runtime
	arrives                    // a request is about to have its effect
	answers                    // it had its effect, and its response is on its way
	does                       // the process is about to act
	did                        // the process has acted
	leaves                     // the tool's Execute has returned
	reverts                    // the tool's Revert is about to begin
	reverted                   // the tool's Revert has returned
	pause                      // between a call and its revert
)

// faultAction is what happens at a fault point.
type faultAction string

// The fault actions without an argument.
const (
	processEnded faultAction = "died"    // the process ends
	power        faultAction = "power"   // the power fails; an optional number says what is lost
	late         faultAction = "late"    // the process ends, and its request arrives after the end of the run
	delayed      faultAction = "delayed" // the tool gets a connection error, and its request arrives late
	lost         faultAction = "lost"    // the response is lost
	void         faultAction = "void"    // the response reports success without an effect
	cancel       faultAction = "cancel"  // the caller cancels
	fails        faultAction = "fails"   // Revert returns an error
	again        faultAction = "again"   // Execute runs again with the same key
	foreign      faultAction = "foreign" // another actor changes something; its name follows
)

// kind returns a fault action without its argument.
func (h faultAction) kind() faultAction {
	word, _, _ := strings.Cut(string(h), ":")
	word, _, _ = strings.Cut(word, "+")
	return faultAction(word)
}

// crash reports whether the action ends a process.
func (h faultAction) crash() bool {
	return slices.Contains([]faultAction{processEnded, power, late}, h.kind())
}

// otherActor returns the name of the other actor's change, or "".
func (h faultAction) otherActor() string {
	if _, name, ok := strings.Cut(string(h), "foreign:"); ok {
		return name
	}
	return ""
}

// variant returns the number of the power failure.
func (h faultAction) variant() uint64 {
	_, number, _ := strings.Cut(string(h), ":")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// fault is one fault in a process, at the fault point with that number.
type fault struct {
	at  int
	how faultAction
}

func (f fault) String() string { return fmt.Sprintf("%d-%s", f.at, f.how) }

// faultPath lists the fault of each process in sequence.
type faultPath []fault

// name returns the name of a run: INPUT/FAULT/FAULT.
func name(input int, w faultPath) string {
	parts := []string{strconv.Itoa(input)}
	for _, f := range w {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, "/")
}

func parseName(text string) (input int, w faultPath, err error) {
	parts := strings.Split(text, "/")
	if input, err = strconv.Atoi(parts[0]); err != nil {
		return 0, nil, fmt.Errorf("reverttest: %q names no run: valid is INPUT/FAULT/FAULT, as a story tells it", text)
	}
	for _, part := range parts[1:] {
		number, word, _ := strings.Cut(part, "-")
		at, err := strconv.Atoi(number)
		if err != nil || word == "" {
			return 0, nil, fmt.Errorf("reverttest: %q names no fault: valid is NUMBER-HOW, as a story tells it", part)
		}
		w = append(w, fault{at, faultAction(word)})
	}
	return input, w, nil
}

// reachedPoint is a fault point that a process reached.
type reachedPoint struct {
	moment faultPoint
	what   string
	during stage
	weak   bool // unsynced data exists
}

// stage is the progress of a process.
type stage uint8

const (
	starting stage = iota
	calling
	waiting
	reverting
	recovering
	over
)

// actionsAt returns the possible faults at a fault point of the process with that
// number.
func (c *inputRuns) actionsAt(i int, n reachedPoint, first bool) (all []faultAction) {
	if n.moment == pause {
		if first {
			for _, name := range c.otherActors {
				all = append(all, foreign+faultAction(":"+name))
			}
		}
		return append(all, processEnded)
	}
	if n.during != over {
		all = append(all, processEnded)
	}
	if n.weak {
		all = append(all, power, power+":1", power+":2")
	}
	switch n.moment {
	case arrives:
		all = append(all, lost, late, delayed)
		if c.verifies && n.during == calling {
			all = append(all, void)
		}
	case answers:
		all = append(all, lost)
	case reverts, reverted:
		all = append(all, fails)
	case leaves:
		if c.idempotent {
			all = append(all, again)
		}
	case wrote, point, does, did, pause:
	}
	if first && n.during == calling {
		all = append(all, cancel)
	}
	if first && len(c.otherActors) > 0 && n.during != starting {
		all = append(all, processEnded+faultAction("+foreign:"+c.otherActors[i%len(c.otherActors)]))
	}
	return all
}

// describe returns a fault action in words.
func describe(h faultAction) string {
	words := map[faultAction]string{
		processEnded: "the process dies", power: "the power goes", late: "the process dies with this under way", delayed: "the answer does not come and this is still under way",
		lost: "this is lost", void: "yes is answered, and nothing happens", cancel: "the caller gives up", fails: "this is made to fail",
		again: "this is delivered again", foreign: "somebody else " + h.otherActor(),
	}[h.kind()]
	if h.kind() == power && h.variant() > 0 {
		words += " (and takes only a part)"
	}
	return words
}
