package agent

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/journal"
	"github.com/remit-dev/remit/revert/record"
	"github.com/remit-dev/remit/tool"
)

// maxNote bounds the note of a feedback, in bytes.
const maxNote = 4096

// Feedback records a person's rating of a call of any session. f names the
// call, the verdict, the rater, and optionally a note. The tool is the one that
// the journal has for the call: if f names one, it must be the same. The
// principal of the call may rate it too, and the record says so. Feedback
// returns what it recorded, durably. The newest rating of each person counts.
func (rt *Runtime) Feedback(ctx context.Context, f provenance.Feedback) (provenance.Feedback, error) {
	_, c, err := revert.LoadCall(ctx, rt.journal, f.Call)
	if err != nil {
		return provenance.Feedback{}, err
	}
	return rt.feedback(ctx, c, f)
}

// Feedback records the rating of one of the session's own calls by its
// principal; see Runtime.Feedback.
func (s *Session) Feedback(ctx context.Context, call string, verdict provenance.Rating, note string) (provenance.Feedback, error) {
	asked, ok, err := s.rt.first(ctx, journal.Query{Call: call})
	if err == nil && (!ok || asked.Session != s.id) { // also a call in a transaction of the parent
		err = s.errForeignTxn(call)
	}
	if err != nil {
		return provenance.Feedback{}, err
	}
	_, c, err := revert.LoadCall(ctx, s.rt.journal, call)
	if err != nil {
		return provenance.Feedback{}, err
	}
	return s.rt.feedback(ctx, c, provenance.Feedback{Call: call, Verdict: verdict, Note: note, By: s.principal.ID})
}

func (rt *Runtime) feedback(ctx context.Context, c *revert.Call, f provenance.Feedback) (provenance.Feedback, error) {
	switch err := f.Verdict.Check(); {
	case err != nil:
		return provenance.Feedback{}, fmt.Errorf("%w: %w", tool.ErrInvalid, err)
	case f.By == "":
		return provenance.Feedback{}, fmt.Errorf("feedback names who gives it: %w", tool.ErrInvalid)
	case len(f.Note) > maxNote:
		return provenance.Feedback{}, fmt.Errorf("the note has %d bytes; a note has at most %d: %w", len(f.Note), maxNote, tool.ErrInvalid)
	case c.Phase == revert.PhaseErased:
		return provenance.Feedback{}, fmt.Errorf("call %s: %w, and nothing is left to judge", c.Ref.Call, record.ErrErased)
	case f.Tool != "" && f.Tool != c.Tool.Name, f.Digest != "" && f.Digest != c.Tool.Digest:
		return provenance.Feedback{}, fmt.Errorf("call %s is one of another tool, or of another declaration of it: %w", c.Ref.Call, tool.ErrInvalid)
	}
	who, err := rt.principalOf(ctx, c.Session)
	if err != nil {
		return provenance.Feedback{}, err
	}
	f.Tool, f.Digest, f.Call, f.BySelf = c.Tool.Name, c.Tool.Digest, c.Ref.Call, f.By == who.ID
	body := &record.Feedback{Feedback: f}
	if err := rt.answer(ctx, c.Session, revert.CallRecord{Txn: c.Ref.Txn, Call: c.Ref.Call, Body: body}); err != nil {
		return provenance.Feedback{}, err
	}
	return body.Feedback, nil
}
