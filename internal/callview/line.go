package callview

import (
	"fmt"
	"time"

	"github.com/remit-dev/remit/revert"
)

// LineChanges limits the changes that a Line names.
const LineChanges = 3

// Line is a call in a list. Its texts are those of the records: whoever writes
// them to a terminal escapes them.
type Line struct {
	ID, Tool, Args string
	Status, Kind   string // Kind is the class of the style: good, bad, doubt, faint
	Class, Took    string
	Began          time.Time
	Changes        []ChangeLine
	More           int // further changes
	Reverted       string
	Waits          bool
}

// ChangeLine is a change of a resource in a list.
type ChangeLine struct{ Verb, Resource string }

// LineOf returns a call as a line that hides its sensitive arguments.
func LineOf(call *revert.Call, sensitive []string) Line {
	a := AttemptOf(call)
	l := Line{
		ID: call.Ref.Call, Tool: call.Tool.Name, Args: Arguments(a.Input, sensitive), Status: Status(call), Class: string(a.Class), Began: call.Began, Reverted: call.RevertSummary(),
		Waits: call.Waits() && call.Asked != nil && call.Answered == nil,
	}
	l.Kind = StatusKind(l.Status)
	if !call.Ended.IsZero() {
		l.Took = Took(call.Ended.Sub(call.Began))
	}
	if call.Done != nil {
		if p, is := ProgramOf(call.Done.Output); is && p.Failed() {
			l.Status, l.Kind = p.shortResult(), "bad"
		}
	}
	for i, ch := range call.Changes {
		if i == LineChanges {
			l.More = len(call.Changes) - i
			break
		}
		l.Changes = append(l.Changes, ChangeLine{ChangeVerb(ch.Kind), ch.Resource})
	}
	return l
}

// StatusKind returns the class of the style of a status.
func StatusKind(status string) string {
	switch status {
	case "done", "committed":
		return "good"
	case "pending", "held", "in_flight", "open":
		return "doubt"
	case "reverted", "dropped", "erased":
		return "faint"
	default:
		return "bad"
	}
}

// Took formats a duration for a list. It returns "" for a negative one.
func Took(d time.Duration) string {
	switch {
	case d < 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}
