package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/remit-dev/remit/internal/callview"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/record"
)

// maxText limits a text of a page, in bytes: an agent chooses its size.
const maxText = 64 << 10

func programOf(output json.RawMessage) (callview.Program, bool) { return callview.ProgramOf(output) }

type callPage struct {
	Call     callLine
	Txn      string
	Session  string
	Who      string
	TxnState string
	Prompt   *promptLine

	Input, Output, Delivered string
	DeliveredBy              []string
	Cut                      bool // a text is longer than the page shows
	Program                  *programPart
	Redacted, Why, Effect    string
	Known                    string
	Access                   []record.Access
	Decision                 *callview.Decision
	Approvals                []approvalLine
	Refused                  *record.Access
	Waits                    bool
	Verified                 []record.Verified
	Hosts                    []effect.Host
	Denied                   []effect.DeniedHost
	Changes                  []changeRow
	Reversals                []reversalPart
	WayBack                  string
	CanRevert                bool
	CanRevertTxn             bool
	Explained                bool // the console can explain the decision
	Command                  string
}

type programPart struct {
	Result, Stdout, Stderr, Sandbox string
	Failed                          bool
	Notes                           []string
}

type changeRow struct {
	Verb, Resource string
	Before, After  string
}

type approvalLine struct{ By, What string }

type reversalPart struct {
	Txn, By, Cause string
	Results        []effect.Result
	Open           bool
}

// loadCall returns a call, also a nested one, with its transaction.
func (c *Console) loadCall(ctx context.Context, id string) (*revert.Txn, *revert.Call, error) {
	txn, err := revert.TxnOf(ctx, c.Runtime.Journal(), id)
	if err != nil {
		return nil, nil, err
	}
	t, err := c.Runtime.Load(ctx, txn)
	if err != nil {
		return nil, nil, err
	}
	call, ok := t.Call(id)
	if !ok {
		return nil, nil, &problem{http.StatusNotFound, "The journal has no such call", id}
	}
	return t, call, nil
}

func (c *Console) call(r *http.Request) (string, page, error) {
	ctx, id := r.Context(), idOf(r.URL.Query())
	t, call, err := c.loadCall(ctx, id)
	if err != nil {
		return "", page{}, err
	}
	d := callPage{Call: c.lineOf(call), Txn: t.ID, Session: t.Session, Who: c.principal(ctx, t.Session), TxnState: string(t.State())}
	d.CanRevertTxn = canRevert(t)
	if t.Prompt != nil {
		d.Prompt = &promptLine{t.Prompt.ID, t.Prompt.Client, t.Prompt.Text}
	}
	d.Explained = c.Explain != nil
	if err := c.fill(&d, call); err != nil {
		return "", page{}, err
	}
	return "call", page{Title: "Call of " + call.Tool.Name, Place: "timeline", Data: d}, nil
}

// fill adds what the records of a call say, without sensitive values.
func (c *Console) fill(d *callPage, full *revert.Call) error {
	call := callview.WithoutSensitive(full, c.sensitive(full.Tool.Name))
	a := callview.AttemptOf(call)
	if t, known := c.Runtime.Tools().Get(call.Tool.Name); known {
		a.Declare(full, t)
	}
	if err := a.Decode(call.Ref.Call); err != nil {
		return err
	}
	d.Input, d.Redacted, d.Why = d.cut(pretty(a.Input)), strings.Join(a.Redacted, ", "), a.Why
	d.Access, d.Decision, d.Refused, d.Waits = a.Access, a.Decision, a.Refused, a.Asked != nil
	d.Effect, d.Known = effectWords(call, a), knownWords(call, a)
	if a.Approval != nil {
		d.Approvals = append(d.Approvals, approvalLine{a.Approval.By, a.Approval.Grant})
	}
	for _, got := range a.Approved {
		l := approvalLine{By: got.By}
		for _, access := range got.Access {
			l.What += " " + access.Action + " " + access.Resource
		}
		d.Approvals = append(d.Approvals, l)
	}
	d.Verified, d.Hosts, d.Denied = call.Verified, call.ContactedHosts(), call.DeniedHosts()
	for _, ch := range call.Changes {
		d.Changes = append(d.Changes, changeRow{callview.ChangeVerb(ch.Kind), ch.Resource, tokenWords(ch.Pre), tokenWords(ch.Post)})
	}
	for _, u := range call.Reversals() {
		p := reversalPart{Txn: u.Txn, By: u.Reverting.By, Cause: u.Reverting.Cause, Open: u.Reverted == nil}
		if u.Reverted != nil {
			p.Results = u.Reverted.Results
		}
		d.Reversals = append(d.Reversals, p)
	}
	d.output(call)
	d.WayBack, d.CanRevert = wayBack(full, a)
	if c.Hint != nil {
		d.Command = c.Hint("show", full.Ref.Call)
	}
	return nil
}

func (d *callPage) output(call *revert.Call) {
	if call.Done == nil {
		return
	}
	if p, is := programOf(call.Done.Output); is {
		d.Program = &programPart{p.Result(), d.cut(*p.Stdout), d.cut(*p.Stderr), p.Sandbox, p.Failed(), p.Notes()}
	} else {
		d.Output = d.cut(pretty(call.Done.Output))
	}
	if call.Done.Delivered != nil {
		d.Delivered, d.DeliveredBy = d.cut(pretty(call.Done.Delivered)), call.Done.DeliveredBy
	}
}

// cut returns the beginning of a text that is too long for a page.
func (d *callPage) cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	d.Cut = true
	return strings.ToValidUTF8(text[:maxText], "")
}

// pretty indents JSON. It returns other texts as they are.
func pretty(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	return b.String()
}

func tokenWords(t effect.Token) string {
	if t == "" {
		return "nothing"
	}
	return string(t)
}

func effectWords(call *revert.Call, a callview.Attempt) string {
	if a.Class == "" || call.Erased != nil {
		return string(a.Class)
	}
	words := string(a.Class)
	if !a.Declared {
		words += " (undeclared)"
	}
	return words + ", " + a.Confinement
}

func knownWords(call *revert.Call, a callview.Attempt) string {
	if a.Coverage != effect.Observed || call.Erased != nil {
		return ""
	}
	return "observed in " + strings.Join(a.Observed, ", ") + ", unknown elsewhere"
}

// wayBack says how the effects of a call can be reverted.
func wayBack(call *revert.Call, a callview.Attempt) (words string, can bool) {
	switch {
	case call.Erased != nil:
		return "Its records were erased: it can no longer be reverted.", false
	case call.IsReverted():
		return "It is reverted.", false
	case call.Phase == revert.PhaseStarted:
		return "It has no end yet.", false
	case !call.HasEffects():
		return "It left no effect, so there is nothing to revert.", false
	case len(call.Changes) > 0 && call.Observed():
		return fmt.Sprintf("A revert restores %s. What it did elsewhere is unknown.", count(len(call.Remaining()), "recorded change")), true
	case len(call.Changes) > 0:
		return fmt.Sprintf("A revert restores %s.", count(len(call.Remaining()), "recorded change")), true
	case call.Tool.UndoVersion != "":
		return "A revert calls the tool's own Revert.", true
	case a.Class == effect.Pivot:
		return "Its effect is outside of what remit sees, and its tool has no revert.", false
	default:
		return "A revert tries what its tool declares.", true
	}
}
