package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

func gradeFile(t *testing.T, records ...provenance.GradeRecord) []byte {
	var all []provenance.GradeRecord
	for _, r := range records {
		sealed, err := r.Sealed()
		require.NoError(t, err)
		all = append(all, sealed)
	}
	file, err := json.Marshal(all)
	require.NoError(t, err)
	return file
}

// TestGraded: a grade is of one declaration, and of no other.
func TestGraded(t *testing.T) {
	made, err := tool.Create("upper", "Upper-case a text.", func(_ context.Context, in string) (string, error) { return in, nil }, tool.Pure())
	require.NoError(t, err)
	require.Equal(t, provenance.Ungraded, made.Grade())
	require.Equal(t, "ungraded", made.Facts().Grade)
	file := gradeFile(t, provenance.GradeRecord{Tool: "upper", Digest: made.Digest(), Grade: provenance.ReadOnly, Kit: 1})
	graded, err := made.Graded(file)
	require.NoError(t, err)
	require.Equal(t, provenance.ReadOnly, graded.Grade())
	require.Equal(t, "read_only", graded.Facts().Grade)
	require.Equal(t, made.Digest(), graded.Digest())
	r, ok := graded.GradeRecord().Get()
	require.True(t, ok)
	require.Equal(t, "upper", r.Tool)

	changed, err := graded.Modify(func(s *tool.Spec) { s.Description += " It shouts." })
	require.NoError(t, err)
	require.Equal(t, provenance.Ungraded, changed.Grade())
	changed, err = changed.Graded(file)
	require.NoError(t, err)
	require.Equal(t, provenance.Ungraded, changed.Grade())
	require.True(t, changed.GradeRecord().IsAbsent())
	require.True(t, tool.Tool{}.GradeRecord().IsAbsent())
	require.Equal(t, provenance.Ungraded, tool.Tool{}.Grade())
	_, err = tool.Tool{}.Graded(file)
	require.Error(t, err)
}

// TestReadGrades: what is not whole is refused.
func TestReadGrades(t *testing.T) {
	good := provenance.GradeRecord{Tool: "upper", Digest: "sha256:1", Grade: provenance.Compensable, Kit: 1}
	for name, file := range map[string]string{
		"no JSON":              "nonsense",
		"an unknown field":     `[{"toool":"upper"}]`,
		"edited":               `[{"tool":"upper","digest":"sha256:1","grade":"crash_undoable","kit":1,"seed":0,"runs":0,"build":{"module":"","version":"","go":"","platform":""},"sum":"sha256:0"}]`,
		"no grade":             string(gradeFile(t, provenance.GradeRecord{Tool: "upper", Digest: "sha256:1", Grade: "best"})),
		"ungraded is no grade": string(gradeFile(t, provenance.GradeRecord{Tool: "upper", Digest: "sha256:1", Grade: provenance.Ungraded})),
		"no digest":            string(gradeFile(t, provenance.GradeRecord{Tool: "upper", Grade: provenance.Compensable})),
		"twice":                string(gradeFile(t, good, good)),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := provenance.ReadGrades([]byte(file))
			require.ErrorContains(t, err, "file of grades")
		})
	}
	all, err := provenance.ReadGrades(gradeFile(t, good))
	require.NoError(t, err)
	require.Len(t, all, 1)
}

func TestAtLeast(t *testing.T) {
	require.True(t, provenance.CrashUndoable.AtLeast(provenance.Compensable))
	require.True(t, provenance.Compensable.AtLeast(provenance.Compensable))
	require.False(t, provenance.NotUndoable.AtLeast(provenance.Compensable))
	require.False(t, provenance.Grade("best").AtLeast(provenance.NotUndoable))
	require.True(t, provenance.Grade("").AtLeast(provenance.Ungraded))
}
