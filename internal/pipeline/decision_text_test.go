package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/pipeline"
	"github.com/remit-dev/remit/perm"
)

// TestRememberedDecision checks that each decision gets its own text, whatever
// was decided before.
func TestRememberedDecision(t *testing.T) {
	l := &pipeline.Pipeline{}
	texts := rapid.SampledFrom([]string{"", "a", "b"})
	reasons := rapid.Custom(func(t *rapid.T) perm.Reason {
		return perm.Reason{Text: texts.Draw(t, "text"), At: texts.Draw(t, "at"), Set: texts.Draw(t, "set")}
	})
	rapid.Check(t, func(t *rapid.T) {
		d := perm.DecisionRecord{
			Effect: texts.Draw(t, "effect"), Revision: texts.Draw(t, "revision"),
			Reasons: rapid.SampledFrom([][]perm.Reason{nil, {}, rapid.SliceOfN(reasons, 1, 2).Draw(t, "reasons")}).Draw(t, "list"),
			Hints:   rapid.SliceOfN(texts, 0, 1).Draw(t, "hints"),
		}
		want, err := canon.Marshal(d)
		require.NoError(t, err)
		for range 2 {
			got, err := l.DecisionText(d)
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
		}
	})
}
