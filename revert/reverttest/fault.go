package reverttest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// faultPoint is a kind of place at which a fault can happen.
type faultPoint uint8

const (
	wrote    faultPoint = iota // a write of the journal or the disk
	point                      // before something that the runtime does
	arrives                    // a request is about to have its effect
	answers                    // it had it, and its answer is on the way
	does                       // the process is about to do something
	did                        // it has
	leaves                     // the tool's Execute has returned
	reverts                    // the tool's Revert is about to begin
	reverted                   // it has returned
	pause                      // between a call and its undo
)

// faultAction is what happens at a moment.
type faultAction string

// The hows that have no argument.
const (
	died    faultAction = "died"    // the process ends
	power   faultAction = "power"   // the power goes; a number may follow, which says what is lost
	late    faultAction = "late"    // the process ends, and what it asked for arrives after all is over
	delayed faultAction = "delayed" // the tool hears that the connection broke, and what it asked for arrives late
	lost    faultAction = "lost"    // the answer is lost
	void    faultAction = "void"    // the answer is yes, and nothing has happened
	cancel  faultAction = "cancel"  // the caller gives up
	fails   faultAction = "fails"   // Revert returns an error
	again   faultAction = "again"   // Execute is run again with the same key
	foreign faultAction = "foreign" // somebody else changes something; its name follows
)

// kind is a how without its argument.
func (h faultAction) kind() faultAction {
	word, _, _ := strings.Cut(string(h), ":")
	word, _, _ = strings.Cut(word, "+")
	return faultAction(word)
}

// crash reports whether a process ends by it.
func (h faultAction) crash() bool { return slices.Contains([]faultAction{died, power, late}, h.kind()) }

// foreigner is who changes something, empty where nobody does.
func (h faultAction) foreigner() string {
	if _, name, ok := strings.Cut(string(h), "foreign:"); ok {
		return name
	}
	return ""
}

// variant tells the ways apart in which the power goes.
func (h faultAction) variant() uint64 {
	_, number, _ := strings.Cut(string(h), ":")
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// fault is one thing that goes wrong in a process, at the moment with that number.
type fault struct {
	at  int
	how faultAction
}

func (f fault) String() string { return fmt.Sprintf("%d-%s", f.at, f.how) }

// way is what goes wrong in each process, one after the other.
type way []fault

// name is how a run is told: INPUT/FAULT/FAULT.
func name(input int, w way) string {
	parts := []string{strconv.Itoa(input)}
	for _, f := range w {
		parts = append(parts, f.String())
	}
	return strings.Join(parts, "/")
}

func parseName(text string) (input int, w way, err error) {
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

// noted is a moment that a process came past.
type noted struct {
	moment faultPoint
	what   string
	during stage
	weak   bool // something is there that power could take
}

// stage is what a process is at.
type stage uint8

const (
	starting stage = iota
	calling
	waiting
	undoing
	recovering
	over
)

// hows lists what can go wrong at a moment of the process with that number.
func (c *inputRuns) hows(i int, n noted, first bool) (all []faultAction) {
	if n.moment == pause {
		if first {
			for _, name := range c.foreigners {
				all = append(all, foreign+faultAction(":"+name))
			}
		}
		return append(all, died)
	}
	if n.during != over {
		all = append(all, died)
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
	if first && len(c.foreigners) > 0 && n.during != starting {
		all = append(all, died+faultAction("+foreign:"+c.foreigners[i%len(c.foreigners)]))
	}
	return all
}

// describe is a how in words.
func describe(h faultAction) string {
	words := map[faultAction]string{
		died: "the process dies", power: "the power goes", late: "the process dies with this under way", delayed: "the answer does not come and this is still under way",
		lost: "this is lost", void: "yes is answered, and nothing happens", cancel: "the caller gives up", fails: "this is made to fail",
		again: "this is delivered again", foreign: "somebody else " + h.foreigner(),
	}[h.kind()]
	if h.kind() == power && h.variant() > 0 {
		words += " (and takes only a part)"
	}
	return words
}
