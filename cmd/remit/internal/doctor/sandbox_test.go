package doctor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/sandbox"
)

// TestLevelFinding: doctor names each missing layer of the sandbox, and how to
// get it.
func TestLevelFinding(t *testing.T) {
	for _, tt := range []struct {
		name      string
		reached   sandbox.Protections
		err       error
		is        Health
		what, fix string
	}{
		{"everything", sandbox.Protections{Level: sandbox.Strict, Landlock: 7}, nil, Healthy, "level strict: namespaces of their own, Landlock (version 7)", ""},
		{
			"no namespaces",
			sandbox.Protections{Level: sandbox.Partial, Missing: []string{"namespaces: fork/exec: operation not permitted", "files: x"}},
			nil,
			Weaker, "level partial; missing: namespaces: fork/exec: operation not permitted; files: x", "user.max_user_namespaces",
		},
		{
			"old Landlock",
			sandbox.Protections{Level: sandbox.Partial, Missing: []string{"landlock: version 3; from 6 on it bounds all that it should"}},
			nil,
			Weaker, "level partial", "a kernel from 6.12",
		},
		{"something else", sandbox.Protections{Missing: []string{"other: x"}}, nil, Weaker, "level none; missing: other: x", "require contains"},
		{"nothing", sandbox.Protections{}, fmt.Errorf("%w: here", sandbox.ErrNoSandbox), Weaker, "level none: no program can be confined here", "give no tool"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := levelFinding(tt.reached, tt.err)
			require.Equal(t, tt.is, f.Is)
			require.Contains(t, f.What, tt.what)
			require.Contains(t, f.Fix, tt.fix)
			require.Equal(t, tt.is == Healthy, f.Fix == "")
		})
	}
}

func TestWayFinding(t *testing.T) {
	f := writeModeFinding("root docs", sandbox.WriteMode{View: sandbox.Overlay})
	require.Equal(t, Finding{Where: "root docs", Check: "programs", Is: Healthy, What: f.What}, f)
	require.Contains(t, f.What, "The kernel renames its folders")
	f = writeModeFinding("root docs", sandbox.WriteMode{View: sandbox.Overlay, Protections: sandbox.Protections{Moves: "an ordinary user"}})
	require.Equal(t, Healthy, f.Is)
	require.Contains(t, f.What, "another inode number: an ordinary user")
	f = writeModeFinding("root docs", sandbox.WriteMode{View: sandbox.Overlay, Protections: sandbox.Protections{Unsupervised: "the kernel is too old"}})
	require.Equal(t, Weaker, f.Is)
	require.Contains(t, f.What, "no folder of the root can be renamed: the kernel is too old")
	require.NotEmpty(t, f.Fix)
	f = writeModeFinding("root docs", sandbox.WriteMode{View: sandbox.Direct, Why: "a/b has another owner"})
	require.Equal(t, Weaker, f.Is)
	require.Contains(t, f.What, "a/b has another owner")
	require.NotEmpty(t, f.Fix)
}
