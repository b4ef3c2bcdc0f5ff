package tool

import (
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
)

// outcome begins an outcome with what is known of a permitted call.
func (l *Pipeline) outcome(p permitted, s Status) Outcome {
	out := Outcome{
		Call: p.id, Txn: l.p.Recorder.Txn(), Tool: p.tool.Name(), Status: s, EffectClass: p.class, Changes: []Change{},
	}
	record := p.veil.decision(p.decision)
	out.Decision = &record
	if p.released != nil {
		out.Decision = decisionRecord(p.released.Decision)
	}
	return out
}

// maxWhy bounds what an outcome says of its cause.
const maxWhy = 16 << 10

// withText adds what the model is told: what happened, what is allowed instead,
// whether a retry can help. It never repeats an argument.
func (o Outcome) withText() *Outcome {
	if o.Output == nil {
		o.Output = []byte("null")
	}
	if o.Error != nil { // a tool's error, which may be any bytes
		o.Error.Why = canon.Printable(o.Error.Why, maxWhy)
	}
	switch o.Status {
	case StatusDone:
		o.Text, o.MediaType = o.Result.Text, o.Result.MediaType
		if o.Text == "" {
			o.Text = string(o.Output)
		}
	case StatusHeld:
		o.Text = "Queued: it runs when the transaction commits. Its result is not known yet. Do not repeat the call."
	case StatusPending:
		o.Text = "Waiting for approval. Do not repeat the call."
	case StatusInvalid:
		o.Text = "Not a valid call: " + o.why() + " Correct the call; repeating it unchanged cannot help."
	case StatusDenied:
		o.Text = "Denied: " + o.reasons() + o.hints() + o.wayAround() + " Repeating the call cannot help."
	case StatusFailed:
		o.Text = "Failed without effect. " + o.why() + " A retry may help."
	case StatusVerifyFailed:
		o.Text = "The result did not pass verification, and " + takenBackText(o.Reverted) + " Repeating the same call is not likely to help."
	case StatusCancelled:
		o.Text = "Cancelled without effect."
	case StatusTimeout:
		o.Text = "Timed out without effect. A retry may help."
		if o.Stage == "policy" {
			o.Text = "The policy did not decide in time. It refused nothing, and the call had no effect. A retry may help."
		}
	case StatusUnknown:
		o.Text = "It is not known whether this call had an effect. Do not repeat it; look at the state first."
	}
	return &o
}

func (o Outcome) why() string {
	if o.Error == nil || o.Error.Why == "" {
		return ""
	}
	return sentence(o.Error.Why)
}

// reasons are the texts that the policy's author wrote, without their places:
// a model has no use for file names. A grant and a tool give theirs as the reason. What
// let an access through is no reason for a denial.
func (o Outcome) reasons() string {
	if o.givesWhy() && o.why() != "" {
		return o.why()
	}
	if o.Decision == nil || len(o.Decision.Reasons) == 0 || o.Decision.Effect == perm.Allow.String() || o.givesWhy() {
		return "the " + o.Stage + " refused it."
	}
	var texts []string
	for _, r := range o.Decision.Reasons {
		texts = append(texts, r.Text)
	}
	return sentence(strings.Join(texts, "; "))
}

// givesWhy reports whether a denial's own reason is what the model is told.
func (o Outcome) givesWhy() bool { return o.Stage == "grant" || o.Stage == "tool" }

func (o Outcome) hints() string {
	if o.Decision == nil || len(o.Decision.Hints) == 0 {
		return ""
	}
	text := ""
	for _, h := range o.Decision.Hints {
		text += " " + sentence(h)
	}
	return text
}

// wayAround is what the caller can do without an access that was refused.
func (o Outcome) wayAround() string {
	if o.around == "" {
		return ""
	}
	return " " + sentence(o.around)
}

// without takes the values of arguments out of the text for the model: each is
// named instead.
func (o *Outcome) without(input []byte) *Outcome {
	v, err := canon.Parse(input, canon.DefaultLimits())
	if err != nil {
		return o
	}
	if v.Kind() == canon.String {
		o.Text = unsaid(o.Text, "the input", v.Text())
	}
	for name, value := range v.Members() {
		if value.Kind() == canon.String {
			o.Text = unsaid(o.Text, name, value.Text())
		}
	}
	return o
}

func unsaid(text, name, value string) string {
	switch {
	case len(value) < 4 || value == hiddenText: // any text holds it by chance
		return text
	case len(value) < 8: // and this one as a part of its words
		return alone(text, value, "‹"+name+"›")
	}
	return strings.ReplaceAll(text, value, "‹"+name+"›")
}

// sentence ends a text as one ends.
func sentence(s string) string {
	if strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
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
