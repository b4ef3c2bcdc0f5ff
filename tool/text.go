package tool

import "strings"

// outcome begins an outcome with what is known of a permitted call.
func (l *Line) outcome(p permitted, s Status) Outcome {
	out := Outcome{
		Call: p.id, Txn: l.p.Recorder.Txn(), Tool: p.tool.Name(), Status: s, EffectClass: p.tool.Class(), Changes: []Change{},
	}
	record := p.decision.Record()
	out.Decision = &record
	return out
}

// withText adds what the model is told: what happened, what is allowed instead,
// whether a retry can help. It never repeats an argument.
func (o Outcome) withText() *Outcome {
	if o.Output == nil {
		o.Output = []byte("null")
	}
	switch o.Status {
	case StatusDone:
		o.Text = o.Result.Text
		if o.Text == "" {
			o.Text = string(o.Output)
		}
	case StatusHeld:
		o.Text = "Queued: it runs when the transaction commits."
	case StatusPending:
		o.Text = "Waiting for approval. Do not repeat the call."
	case StatusInvalid:
		o.Text = "Not a valid call: " + o.why() + " Correct the call; repeating it unchanged cannot help."
	case StatusDenied:
		o.Text = "Denied: " + o.reasons() + o.hints() + " Repeating the call cannot help."
	case StatusFailed:
		o.Text = "Failed without effect. " + o.why() + " A retry may help."
	case StatusVerifyFailed:
		o.Text = "The result did not pass verification, and " + takenBackText(o.TakenBack) + " Repeating the same call is not likely to help."
	case StatusCancelled:
		o.Text = "Cancelled without effect."
	case StatusTimeout:
		o.Text = "Timed out without effect. A retry may help."
	case StatusUnknown:
		o.Text = "It is not known whether this call had an effect. Do not repeat it; look at the state first."
	}
	return &o
}

func (o Outcome) why() string {
	if o.Error == nil || o.Error.Why == "" {
		return ""
	}
	return strings.TrimSuffix(o.Error.Why, ".") + "."
}

// reasons are the texts that the policy's author wrote, without their places:
// a model has no use for file names.
func (o Outcome) reasons() string {
	if o.Stage != "policy" || o.Decision == nil || len(o.Decision.Reasons) == 0 {
		return o.Stage + " refused it."
	}
	var texts []string
	for _, r := range o.Decision.Reasons {
		texts = append(texts, r.Text)
	}
	return strings.Join(texts, "; ") + "."
}

func (o Outcome) hints() string {
	if o.Decision == nil || len(o.Decision.Hints) == 0 {
		return ""
	}
	return " " + strings.Join(o.Decision.Hints, " ")
}

func takenBackText(t string) string {
	switch t {
	case "all":
		return "what it did was taken back."
	case "some":
		return "only a part of what it did could be taken back."
	default:
		return "what it did could not be taken back."
	}
}
