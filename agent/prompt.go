package agent

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// Prompt is a request of the user to a coding agent. The host program vouches
// for it.
type Prompt struct {
	Client string // name of the client, such as claude-code
	ID     string // the client's ID of the prompt
	Text   string // the prompt; the runtime keeps its first words
}

// TxnOption configures a transaction.
type TxnOption func(*txnConfig)

type txnConfig struct{ prompt *Prompt }

// ForPrompt begins the transaction for the calls that follow a prompt: policies
// read the prompt as input.call.prompt, and remit undo takes it back as a whole.
// Client and ID must have 1 to 128 bytes of printable ASCII without spaces.
func ForPrompt(p Prompt) TxnOption {
	return func(c *txnConfig) { c.prompt = &p }
}

// maxPromptName bounds the client and the ID of a prompt, and maxPromptText its
// recorded words, in bytes.
const (
	maxPromptName = 128
	maxPromptText = 200
)

// recorded returns the prompt as the journal and policies have it.
func (p Prompt) recorded() (revert.Prompt, error) {
	for name, text := range map[string]string{"client": p.Client, "ID": p.ID} {
		bad := func(r rune) bool { return r <= ' ' || r > '~' }
		if text == "" || len(text) > maxPromptName || strings.ContainsFunc(text, bad) {
			return revert.Prompt{}, fmt.Errorf("%s of a prompt %q: must have 1 to %d bytes of printable ASCII without spaces: %w", name, text, maxPromptName, tool.ErrInvalid)
		}
	}
	return revert.Prompt{Client: p.Client, ID: p.ID, Text: firstWords(p.Text)}, nil
}

// firstWords returns the beginning of a text as one line for people: without
// control characters, invisible ones and those that change the direction of
// text, which can make a terminal show something else.
func firstWords(text string) string {
	var b strings.Builder
	space := false
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = b.Len() > 0
			continue
		case r == utf8.RuneError, !unicode.IsGraphic(r), unicode.In(r, unicode.Bidi_Control, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
			continue
		}
		room := maxPromptText - utf8.RuneLen(r)
		if space {
			room--
		}
		if b.Len() > room {
			break
		}
		if space {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return b.String()
}

func promptFacts(p *revert.Prompt) *perm.PromptFacts {
	if p == nil {
		return nil
	}
	return &perm.PromptFacts{Client: p.Client, ID: p.ID, Text: p.Text}
}

// beginRecord begins the record of a transaction, for a prompt if p is not nil.
func (s *Session) beginRecord(ctx context.Context, id string, late bool, p *revert.Prompt) (revert.Recorder, error) {
	rec := revert.NewRecorder(s.rt.journal, s.rt.services.Host, s.id)
	if p == nil {
		return rec.Begin(ctx, id, late)
	}
	return rec.BeginPrompt(ctx, id, *p)
}
