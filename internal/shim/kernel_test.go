//go:build linux && (amd64 || arm64)

package shim

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// constant is a constant of a file: its value, and its comment.
type constant struct{ value, comment string }

// TestConstants checks that each constant equals the one in
// golang.org/x/sys/unix with the name in its comment, on both architectures. No
// name occurs twice, and none is missing.
func TestConstants(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "golang.org/x/sys/unix").Output()
	require.NoError(t, err)
	from := strings.TrimSpace(string(dir))
	for _, arch := range []string{"amd64", "arm64"} {
		theirs := constants(t, filepath.Join(from, "constants.go"))
		for _, kind := range []string{"zerrors", "zsysnum", "ztypes"} {
			for _, suffix := range []string{"_linux.go", "_linux_" + arch + ".go"} {
				if kind != "zsysnum" || suffix != "_linux.go" { // numbers depend on the architecture
					for name, c := range constants(t, filepath.Join(from, kind+suffix)) {
						theirs[name] = c
					}
				}
			}
		}
		ours := constants(t, "constants_linux.go")
		for name, c := range constants(t, "numbers_linux_"+arch+".go") {
			ours[name] = c
		}
		require.Greater(t, len(ours), 50)
		seen := map[string]string{}
		for name, c := range ours {
			want, known := theirs[c.comment]
			require.True(t, known, "%s: %q is no constant of the kernel on %s", name, c.comment, arch)
			require.Equal(t, number(t, want.value), number(t, c.value), "%s, %s on %s", name, c.comment, arch)
			require.Empty(t, seen[c.comment], "%s and %s are the same", name, seen[c.comment])
			require.Equal(t, strings.ToLower(strings.ReplaceAll(c.comment, "_", "")), strings.ToLower(strings.Replace(name, "sysFstatat", "sysNewFstatat", 1)),
				"a constant is called as the kernel calls it")
			seen[c.comment] = name
		}
	}
}

// constants returns the constants of a file that are numbers.
func constants(t *testing.T, path string) map[string]constant {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	require.NoError(t, err)
	all := map[string]constant{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Names) != 1 || len(spec.Values) != 1 {
			return true
		}
		value, sign := spec.Values[0], ""
		if minus, ok := value.(*ast.UnaryExpr); ok && minus.Op == token.SUB {
			value, sign = minus.X, "-"
		}
		if literal, ok := value.(*ast.BasicLit); ok && literal.Kind == token.INT {
			all[spec.Names[0].Name] = constant{sign + literal.Value, strings.TrimSpace(spec.Comment.Text())}
		}
		return true
	})
	return all
}

func number(t *testing.T, literal string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(literal, 0, 64)
	require.NoError(t, err)
	return n
}

// TestStructures checks that the kernel's structures have the layout of
// golang.org/x/sys/unix.
func TestStructures(t *testing.T) {
	for _, tt := range []struct{ ours, theirs any }{
		{capUserHeader{}, unix.CapUserHeader{}},
		{capUserData{}, unix.CapUserData{}},
		{mountAttr{}, unix.MountAttr{}},
		{openHow{}, unix.OpenHow{}},
		{pollFd{}, unix.PollFd{}},
		{landlockPathBeneathAttr{}, unix.LandlockPathBeneathAttr{}},
	} {
		ours, theirs := reflect.TypeOf(tt.ours), reflect.TypeOf(tt.theirs)
		require.Equal(t, theirs.Size(), ours.Size(), ours.Name())
		require.Equal(t, theirs.NumField(), ours.NumField(), ours.Name())
		sameFields(t, ours, theirs)
	}
	// The kernel treats the missing fields of a shorter structure as zero.
	sameFields(t, reflect.TypeOf(landlockRulesetAttr{}), reflect.TypeOf(unix.LandlockRulesetAttr{}))
	require.EqualValues(t, 24, reflect.TypeOf(landlockRulesetAttr{}).Size())
}

// sameFields checks that our fields equal the first ones of theirs: same
// offset, same type, and a part of the same name.
func sameFields(t *testing.T, ours, theirs reflect.Type) {
	t.Helper()
	for i := range ours.NumField() {
		a, b := ours.Field(i), theirs.Field(i)
		require.Equal(t, b.Offset, a.Offset, "%s.%s", ours.Name(), a.Name)
		require.Equal(t, b.Type, a.Type, "%s.%s", ours.Name(), a.Name)
		plain := strings.NewReplacer("_", "", "access", "").Replace(strings.ToLower(b.Name))
		short := strings.ToLower(strings.Replace(a.Name, "clear", "clr", 1))
		require.Contains(t, plain, short, "%s.%s stands where %s does", ours.Name(), a.Name, b.Name)
	}
}
