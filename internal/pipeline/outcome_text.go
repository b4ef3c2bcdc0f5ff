package pipeline

import (
	"fmt"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// outcome returns an outcome with what is known about a permitted call.
func (l *Pipeline) outcome(p permitted, s tool.Status) tool.Outcome {
	out := tool.Outcome{
		Call: p.id, Txn: l.p.Recorder.Txn(), Tool: p.tool.Name(), Status: s, EffectClass: p.class, Changes: []tool.Change{},
	}
	record := p.redaction.decision(p.decision)
	out.Decision = &record
	if p.released != nil {
		out.Decision = decisionRecord(p.released.Decision)
	}
	return out
}

// maxWhy bounds the reason of an outcome, in bytes.
const maxWhy = 16 << 10

// withText adds the text for the model: what happened, what is allowed instead,
// and whether a retry can help. The text never repeats an argument.
func withText(o tool.Outcome) *tool.Outcome { return withTextAround(o, "") }

// withTextAround is withText for a denial. around says what the caller can do
// without the denied access.
func withTextAround(o tool.Outcome, around string) *tool.Outcome {
	o = textedAround(o, around)
	return &o
}

// texted is withText for an outcome that no step passes on.
func texted(o tool.Outcome) tool.Outcome { return textedAround(o, "") }

func textedAround(o tool.Outcome, around string) tool.Outcome {
	if o.Output == nil {
		o.Output = []byte("null")
	}
	if o.Error != nil { // a tool's error can contain any bytes
		o.Error.Why = canon.Printable(o.Error.Why, maxWhy)
	}
	switch o.Status {
	case tool.StatusDone:
		o.Text, o.MediaType = o.Result.Text, o.Result.MediaType
		if o.Text == "" {
			o.Text = string(o.Output)
		}
	case tool.StatusHeld:
		o.Text = "Queued: it runs when the transaction commits. Its result is not known yet. Do not repeat the call."
	case tool.StatusPending:
		o.Text = "Waiting for approval. Do not repeat the call."
	case tool.StatusInvalid:
		o.Text = "Not a valid call: " + outcomeWhy(o) + " Correct the call; repeating it unchanged cannot help."
	case tool.StatusDenied:
		o.Text = "Denied: " + outcomeReasons(o) + outcomeHints(o) + alternativeText(around) + " Repeating the call cannot help."
	case tool.StatusFailed:
		o.Text = "Failed without effect. " + outcomeWhy(o) + " A retry may help."
	case tool.StatusVerifyFailed:
		o.Text = "The result did not pass verification, and " + takenBackText(o.Reverted) + " Repeating the same call is not likely to help."
	case tool.StatusCancelled:
		o.Text = "Cancelled without effect."
	case tool.StatusTimeout:
		o.Text = "Timed out without effect. A retry may help."
		if o.Stage == "policy" {
			o.Text = "The policy did not decide in time. It refused nothing, and the call had no effect. A retry may help."
		}
	case tool.StatusUnknown:
		o.Text = "It is not known whether this call had an effect. Do not repeat it; look at the state first."
	}
	return o
}

func outcomeWhy(o tool.Outcome) string {
	if o.Error == nil || o.Error.Why == "" {
		return ""
	}
	return canon.Sentence(o.Error.Why)
}

// outcomeReasons returns the texts of the policy's author without their places,
// because a model has no use for file names. For a grant or a tool it returns
// their reason. Reasons that allowed an access are no reasons for a denial.
func outcomeReasons(o tool.Outcome) string {
	if outcomeGivesWhy(o) && outcomeWhy(o) != "" {
		return outcomeWhy(o)
	}
	if o.Decision == nil || len(o.Decision.Reasons) == 0 || o.Decision.Effect == perm.Allow.String() || outcomeGivesWhy(o) {
		return "the " + o.Stage + " refused it."
	}
	var texts []string
	for _, r := range o.Decision.Reasons {
		texts = append(texts, r.Text)
	}
	return canon.Sentence(strings.Join(texts, "; "))
}

// outcomeGivesWhy reports whether the model sees the denial's own reason.
func outcomeGivesWhy(o tool.Outcome) bool { return o.Stage == "grant" || o.Stage == "tool" }

func outcomeHints(o tool.Outcome) string {
	if o.Decision == nil || len(o.Decision.Hints) == 0 {
		return ""
	}
	text := ""
	for _, h := range o.Decision.Hints {
		text += " " + canon.Sentence(h)
	}
	return text
}

func alternativeText(around string) string {
	if around == "" {
		return ""
	}
	return " " + canon.Sentence(around)
}

// textWithout replaces the values of arguments in the text for the model by the
// names of the arguments.
func textWithout(o *tool.Outcome, input []byte) *tool.Outcome {
	v, err := canon.Parse(input, canon.DefaultLimits())
	if err != nil {
		return o
	}
	if v.Kind() == canon.String {
		o.Text = withoutValue(o.Text, "the input", v.Text())
	}
	for name, value := range v.Members() {
		if value.Kind() == canon.String {
			o.Text = withoutValue(o.Text, name, value.Text())
		}
	}
	return o
}

func withoutValue(text, name, value string) string {
	switch {
	case len(value) < 4 || value == hiddenText: // so short a value occurs in any text by chance
		return text
	case len(value) < 8: // and this one as a part of other words
		return alone(text, value, "‹"+name+"›")
	}
	return strings.ReplaceAll(text, value, "‹"+name+"›")
}

func takenBackText(t string) string {
	switch t {
	case "all":
		return "what it did was reverted."
	case "some":
		return "only a part of what it did could be reverted."
	default:
		return "what it did could not be reverted."
	}
}

// notice returns what a call's outcome says about a deprecated tool.
func notice(t tool.Tool) string {
	s := spec(t)
	if s.Deprecated == "" {
		return ""
	}
	return fmt.Sprintf("\nTool %s is deprecated: %s", t.QualifiedName(), canon.Sentence(s.Deprecated))
}
