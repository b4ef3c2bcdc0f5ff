package gitguard

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var grammar = []string{
	"", "\n\n", "# x\n; y", "[a]\nb", "[a]\nb=", "[a]b=c", "[a] b = c d  ; e", "[a]\nb = \"c # d\" # e", "[a]\nb = c\\\n d", "[a]\nb = \\\"c\\\"\\n\\t\\b\\\\",
	"[a \"B c\"]\nk-1 = v", "[a.B.c]\nk=v", "[a \"q\\\"\\\\x\"]\nk=v", "\ufeff[a]\nb=c", "[a]\r\nb = c\r\n", "[a]\nB=1\nb=2\n[A]\nb=3",
	"[a]\nb = \"x \" y", "[a]\nb \n c=1", "[a]\nb=\"\"",
	"b=c", "[a", "[]\nb=c", "[a]\nb = \"c", "[a]\nb = \\x", "[a]\n1-b=c\n", "[a]\nb c", "[a \"x", "[a \"x\ny\"]\nb=c", "[a \"b\"c]\nd=e", "[a]\n=b", "[a]\nb=c\\",
	"[a]\nb\r\nc", "[a]\n_b=c", "[a]\nb=c\\",
}

// TestParseAgreesWithGit compares the parser with git.
func TestParseAgreesWithGit(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("this machine has no git")
	}
	for _, text := range grammar {
		name := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		cmd := exec.CommandContext(t.Context(), git, "config", "--null", "--file", name, "--list")
		cmd.Env = []string{"HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1"}
		out, err := cmd.Output()
		got, gotErr := parse(text)
		if err != nil {
			require.Error(t, gotErr, "%q", text)
			continue
		}
		if gotErr != nil {
			continue // stricter: needs an approval
		}
		want := map[string][]string{}
		for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			if entry == "" {
				continue
			}
			key, value, given := strings.Cut(entry, "\n")
			if !given {
				value = "true"
			}
			want[key] = append(want[key], value)
		}
		require.Equal(t, want, got, "%q", text)
	}
}
