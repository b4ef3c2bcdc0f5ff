package agent

import (
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/remit-dev/remit/tool"
)

func (l LoopLimits) check() error {
	for name, n := range map[string]int64{
		"MaxTurns": int64(l.MaxTurns), "MaxCalls": int64(l.MaxCalls), "MaxBytes": int64(l.MaxBytes), "Timeout": int64(l.Timeout),
		"MaxTurnCalls": int64(l.MaxTurnCalls), "MaxTurnBytes": int64(l.MaxTurnBytes), "TurnTimeout": int64(l.TurnTimeout),
	} {
		if n < 0 {
			return fmt.Errorf("LoopLimits.%s is negative; 0 is the default", name)
		}
	}
	return nil
}

func (l LoopLimits) withDefaults() LoopLimits {
	set := func(n *int, v int) {
		if *n == 0 {
			*n = v
		}
	}
	set(&l.MaxTurns, 64)
	set(&l.MaxCalls, 1000)
	set(&l.MaxBytes, 8<<20)
	set(&l.MaxTurnCalls, 64)
	set(&l.MaxTurnBytes, 1<<20)
	if l.Timeout == 0 {
		l.Timeout = time.Hour
	}
	if l.TurnTimeout == 0 {
		l.TurnTimeout = 10 * time.Minute
	}
	return l
}

// cut limits the results of a turn that the model sees. The journal has all of
// them.
func (r *loopRun) cut(outcomes []tool.Outcome) {
	left := min(r.Limits.MaxTurnBytes, max(0, r.Limits.MaxBytes-r.c.Bytes))
	for i := range outcomes {
		if n := sizeOf(outcomes[i]); n > left && outcomes[i].Status == tool.StatusDone {
			outcomes[i] = shortened(outcomes[i], n, left)
			r.c.Bytes += left // the notice does not count
			left = 0
			continue
		}
		n := sizeOf(outcomes[i])
		left = max(0, left-n)
		r.c.Bytes += n
	}
}

func sizeOf(o tool.Outcome) int {
	if o.Status != tool.StatusDone {
		return len(o.Text)
	}
	n := len(o.Result.Text) + len(o.Result.JSON)
	for _, p := range o.Result.Parts {
		n += len(p.Data)
	}
	return n
}

// shortened returns an outcome with only the beginning of its result for the
// model.
func shortened(o tool.Outcome, n, left int) tool.Outcome {
	text := o.Text
	if len(text) > left {
		for left > 0 && !utf8.RuneStart(text[left]) {
			left--
		}
		text = text[:left]
	}
	text += fmt.Sprintf("\n[The call was done. Its result has %d bytes, and %d of them are shown: a limit of the conversation. Ask for less.]", n, len(text))
	o.Text, o.Result = text, tool.Result{Text: text}
	return o
}
