package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/wire"
)

// choice returns the tool choice for the model's next turn.
func (r *loopRun) choice() wire.ToolChoice {
	switch {
	case r.c.Stopped != "":
		return wire.ToolChoice{Mode: wire.None}
	case r.ToolChoice.Mode == wire.Required && r.c.Chosen:
		return wire.ToolChoice{Single: r.ToolChoice.Single}
	default:
		return r.ToolChoice
	}
}

// request converts a choice as far as the format can express it. The loop
// enforces the rest.
func (r *loopRun) request(c wire.ToolChoice) (map[string]json.RawMessage, error) {
	tools, err := r.Adapter.Request(c)
	if !errors.Is(err, wire.ErrToolChoice) {
		return tools, err
	}
	if c.Single {
		c.Single = false
		return r.request(c)
	}
	if c.Mode == wire.None && r.Adapter.Format() != wire.Bedrock { // Bedrock requires the tools that its history names
		return map[string]json.RawMessage{}, nil
	}
	return r.Adapter.Request(wire.ToolChoice{})
}

// silent ends a turn without calls: the turn is the answer, or the loop
// corrects it.
func (r *loopRun) silent(ctx context.Context, turn wire.Turn) (over bool, err error) {
	owed := r.choice()
	switch {
	case turn.Paused && r.c.Turns > r.Limits.MaxTurns:
		r.c.Stopped = fmt.Sprintf("the limit of %d turns", r.Limits.MaxTurns)
		return false, errors.Join(r.close(ctx, turn, nil), fmt.Errorf("%s: %w", r.c.Stopped, ErrLoopLimit))
	case turn.Paused:
		return false, r.close(ctx, turn, nil)
	case turn.Malformed:
		return false, r.correct(ctx, turn, "Your last call could not be read, and nothing of it was run. Send it again, with arguments that are valid JSON.", ErrIncompleteTurn)
	case !turn.Complete:
		r.c.Stopped = "the turn was cut short, or ended for an unknown reason"
		return false, errors.Join(r.close(ctx, turn, nil), fmt.Errorf("%s: %w", r.c.Stopped, ErrIncompleteTurn))
	case r.c.Stopped != "":
		r.c.Answer = turn.Text
		return false, errors.Join(r.close(ctx, turn, nil), fmt.Errorf("%s; the model has answered without further calls: %w", r.c.Stopped, ErrLoopLimit))
	case owed.Tool != "":
		return false, r.correct(ctx, turn, fmt.Sprintf("Call the tool %q now. That is required before anything else.", owed.Tool), ErrToolChoice)
	case owed.Mode == wire.Required:
		return false, r.correct(ctx, turn, "Call a tool now. At least one call is required before you answer.", ErrToolChoice)
	}
	r.c.Answer, r.c.Answered = turn.Text, len(r.c.Messages)+len(turn.Messages)
	return true, r.close(ctx, turn, nil)
}

// correct tells the model what was wrong with a turn without calls, up to
// MaxCorrections times.
func (r *loopRun) correct(ctx context.Context, turn wire.Turn, text string, why error) error {
	if r.c.Corrected >= r.MaxCorrections {
		r.c.Stopped = "the model was corrected as often as is allowed"
		return errors.Join(r.close(ctx, turn, nil), fmt.Errorf("after %d corrections: %w", r.c.Corrected, why))
	}
	answers, err := r.Adapter.UserMessage(nil, text)
	if err != nil {
		return err
	}
	r.c.Corrected++
	return r.close(ctx, turn, answers)
}

// answer runs the calls of a turn and appends their results to the history.
func (r *loopRun) answer(ctx context.Context, turn wire.Turn) (over bool, err error) {
	stopped := r.c.Stopped // before this turn
	calls, outcomes := turn.Calls, make([]tool.Outcome, len(turn.Calls))
	refused := r.withhold(calls, outcomes)
	ran, ends, err := r.runCalls(ctx, calls, outcomes, refused)
	if err != nil {
		return false, err
	}
	r.c.Calls += ran
	for i, c := range calls {
		if c.Problem != nil {
			outcomes[i] = c.Refused()
		}
	}
	r.cut(outcomes)
	if r.OnResults != nil {
		r.OnResults(calls, outcomes)
	}
	answers, err := r.Adapter.Results(calls, outcomes)
	if err != nil {
		return false, err
	}
	obeyed := r.obeyed(calls, refused)
	r.c.Chosen = r.c.Chosen || obeyed
	if !obeyed {
		r.c.Corrected++
	}
	if err := r.close(ctx, turn, answers); err != nil {
		return false, err
	}
	switch {
	case stopped != "":
		return false, fmt.Errorf("%s; the model calls on all the same: %w", stopped, ErrLoopLimit)
	case !obeyed && r.c.Corrected > r.MaxCorrections:
		r.c.Stopped = "the model was corrected as often as is allowed"
		return false, fmt.Errorf("after %d corrections: %w", max(0, r.MaxCorrections), ErrToolChoice)
	case ends != "":
		r.c.Stopped = ends
		return true, nil
	}
	return false, nil
}

// obeyed reports whether the choice allows a turn with these calls.
func (r *loopRun) obeyed(calls []wire.Call, refused []bool) bool {
	switch {
	case r.ToolChoice.Mode == wire.None:
		return false
	case r.ToolChoice.Mode != wire.Required || r.c.Chosen:
		return true
	}
	for i, c := range calls {
		if c.Problem == nil && !refused[i] && (r.ToolChoice.Tool == "" || r.ToolChoice.Tool == c.Name) {
			return true
		}
	}
	return r.c.Stopped != "" // a limit prevented the call
}

// withhold reports which calls do not run, and answers them.
func (r *loopRun) withhold(calls []wire.Call, outcomes []tool.Outcome) (refused []bool) {
	refused = make([]bool, len(calls))
	left := r.Limits.MaxCalls - r.c.Calls
	valid := 0
	for i, c := range calls {
		if c.Problem != nil {
			continue // it gets its own error as answer
		}
		why, over := r.notRun(c, valid, left)
		if over && r.c.Stopped == "" {
			r.c.Stopped = why
		}
		if why == "" {
			valid++
			continue
		}
		refused[i] = true
		text := "Not run: " + why + "."
		if over {
			text += " No further call is run. Answer with what you have."
		}
		outcomes[i] = c.NotRun(why, text)
	}
	return refused
}

// notRun says why a call that would be the n-th of its turn does not run. over
// reports that no later call runs either.
func (r *loopRun) notRun(c wire.Call, n, left int) (why string, over bool) {
	l := r.Limits
	switch owed := r.choice(); {
	case r.c.Stopped != "":
		return r.c.Stopped, true
	case r.ToolChoice.Mode == wire.None:
		return "no tool may be called here; answer in words", false
	case r.c.Turns > l.MaxTurns:
		return fmt.Sprintf("the limit of %d turns is reached", l.MaxTurns), true
	case r.c.Time >= l.Timeout:
		return fmt.Sprintf("the time limit of %s is reached", l.Timeout), true
	case r.c.Bytes >= l.MaxBytes:
		return fmt.Sprintf("the limit of %d bytes of results is reached", l.MaxBytes), true
	case n >= left:
		return fmt.Sprintf("the limit of %d calls is reached", l.MaxCalls), true
	case n >= l.MaxTurnCalls:
		return fmt.Sprintf("at most %d calls are run in one turn; call again in the next, if it is still needed", l.MaxTurnCalls), false
	case r.ToolChoice.Single && n >= 1:
		return "one call at a time is run; call again in the next turn, if it is still needed", false
	case owed.Tool != "" && owed.Tool != c.Name:
		return fmt.Sprintf("the tool %q is to be called first", owed.Tool), false
	}
	return "", false
}

// waiting ends a run whose calls wait for an approval.
func (r *loopRun) waiting(ctx context.Context) error {
	err := fmt.Errorf("waits for approval: %s: %w", strings.Join(r.c.Waiting, ", "), tool.ErrPending)
	return errors.Join(err, r.keep(context.WithoutCancel(ctx)))
}
