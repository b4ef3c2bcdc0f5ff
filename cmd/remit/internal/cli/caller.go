package cli

import (
	"encoding/json"
	"errors"

	"github.com/remit-dev/remit/internal/lineage"
)

// Caller describes the process that runs the command, and so who can control
// it.
type Caller struct {
	Terminal error         // why no person types into it; nil: standard input is its terminal, and it runs in the foreground
	Chain    lineage.Chain // the process and its ancestors
	Unknown  error         // why the chain is unknown
}

// UnknownCaller returns the caller of a command about which nothing is known.
func UnknownCaller() Caller {
	return Caller{Terminal: errors.New("nothing is known of this process"), Unknown: errors.New("nothing is known of this process")}
}

// ThisProcess returns the caller of this command.
func ThisProcess() Caller {
	c := Caller{Terminal: typedInto()}
	c.Chain, c.Unknown = lineage.Own()
	return c
}

// Refuses returns why an answer to a call must not come from this process, or
// nil. Askers holds the recorded processes that made the call.
func (c Caller) Refuses(askers []json.RawMessage) error {
	if c.Terminal != nil {
		return c.Terminal
	}
	if len(askers) == 0 || errors.Is(c.Unknown, lineage.ErrUnknown) {
		return nil
	}
	if c.Unknown != nil {
		return errors.New("the parents of this process are unknown: " + c.Unknown.Error())
	}
	for _, asker := range askers {
		var a lineage.AskingProcess
		if err := json.Unmarshal(asker, &a); err != nil {
			return errors.New("what is on record of a process that asked cannot be read")
		}
		if why := a.Bars(c.Chain); why != "" {
			return errors.New(why)
		}
	}
	return nil
}
