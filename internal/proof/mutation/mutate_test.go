package mutation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/internal/proof/mutation"
)

const sample = `package sample

type token string

func (t token) Same(o token) bool { return t == o }

type owner struct{ Txn string }

type write struct {
	Durable bool
	Fence   owner
	Claims  []string
}

type disk struct{ synced, busy, left bool }

func (d *disk) Sync() error { d.synced = true; return nil }

func (d *disk) TryLease(name string) error {
	if d.busy {
		return errBusy
	}
	return nil
}

// Put writes, then leaves.
func (d *disk) Put(was, now token, me string, by owner) (write, error) {
	//mutant:barrier
	w := write{Durable: was != ""}
	//mutant:lease
	w.Claims = []string{me}
	//mutant:lease
	w.Fence = by
	//mutant:token
	if !was.Same(now) {
		return w, errBusy
	}
	//mutant:lease
	if w.Fence.Txn != me {
		return w, errBusy
	}
	//mutant:check
	if now == "" {
		return w, errBusy
	}
	//mutant:lease
	if err := d.TryLease(me); err != nil {
		return w, err
	}
	//mutant:order
	if err := d.Sync(); err != nil { //mutant:none
		return w, err
	}
	d.left = d.synced
	return w, nil
}
`

// TestMutants checks that each place is broken in each way, and that the result
// is valid Go.
func TestMutants(t *testing.T) {
	text := strings.Replace(sample, "//mutant:order\n\tif err := d.Sync(); err != nil { //mutant:none", "//mutant:order\n\terr := d.save()", 1)
	text = strings.Replace(text, "\t\treturn w, err\n\t}\n\td.left", "\td.left", 1)
	text = strings.Replace(text, "return w, nil\n}\n", "return w, err\n}\n\nfunc (d *disk) save() error {\n\t//mutant:barrier\n\treturn d.Sync()\n}\n", 1)
	f, complaints, err := mutation.Read("sample.go", []byte(text))
	require.NoError(t, err)
	require.Empty(t, complaints)
	all, err := f.Mutants()
	require.NoError(t, err)
	got := map[string]string{}
	for _, m := range all {
		require.NotEqual(t, text, string(m.Text), m.Name)
		got[m.Name+": "+m.How] = changed(text, string(m.Text))
	}
	require.Equal(t, map[string]string{
		"(*disk).Put barrier: never durable":      `w := write{Durable: false && (was != "")}`,
		"(*disk).Put lease: nothing is held":      `func(...any) {}([]string{me})`,
		"(*disk).Put lease 2: nothing is held":    `func(...any) {}(by)`,
		"(*disk).Put token: always the same":      `if !func(...any) bool { return true }(was, now) {`,
		"(*disk).Put token: never the same":       `if !func(...any) bool { return false }(was, now) {`,
		"(*disk).Put lease 3: everybody passes":   `if false || func(...any) bool { return false }(w.Fence.Txn, me) {`,
		"(*disk).Put check: refuses nothing":      `if false && (now == "") {`,
		"(*disk).Put lease 4: nobody is kept out": `if err := func(...any) error { return nil }(d, me); err != nil {`,
		"(*disk).Put order: the other way round":  `d.left = d.synced`,
		"(*disk).save barrier: not synced":        `return func(...any) error { return nil }(d)`,
	}, got)
}

// changed returns the first line that differs.
func changed(a, b string) string {
	was, is := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range was {
		if was[i] != is[i] {
			return strings.TrimSpace(is[i])
		}
	}
	return ""
}

// TestTagErrors checks that a place without its tag, and a tag without its
// place, are reported with their line.
func TestTagErrors(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, want string }{
		"no tag":        {"\t//mutant:token\n", "", `this token in (*disk).Put has no tag: //mutant:token above it, or //mutant:none and why`},
		"another tag":   {"//mutant:token", "//mutant:barrier", "this is a token, and its tag says barrier"},
		"no such kind":  {"//mutant:token", "//mutant:tokens", "tokens is no kind of place"},
		"no place":      {"// Put writes", "//mutant:lease\n// Put writes", "the tag //mutant:lease stands above no such place"},
		"no reason":     {"//mutant:token", "//mutant:none", "a place on which nothing depends says why"},
		"nothing after": {"\td.left = d.synced\n\treturn w, nil", "\t//mutant:order\n\treturn w, nil", "nothing follows what has to come first"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(sample, tt.old, tt.new, 1)
			require.NotEqual(t, sample, text)
			_, complaints, err := mutation.Read("sample.go", []byte(text))
			require.NoError(t, err)
			var said []string
			for _, c := range complaints {
				require.Positive(t, c.Line)
				said = append(said, c.Text)
			}
			require.Contains(t, said, tt.want)
		})
	}
	_, _, err := mutation.Read("sample.go", []byte("package"))
	require.Error(t, err)
	_, err = mutation.All(t.TempDir())
	require.Error(t, err, "none of the folders is there")
}

// TestTry checks that the tests of a module run on a mutant while its source
// stays unchanged.
func TestTry(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	text := "package tiny\n\ntype T string\n\nfunc (t T) Same(o T) bool { return t == o }\n\nfunc Fits(a, b T) bool {\n\t//mutant:token\n\treturn a.Same(b)\n}\n"
	write("go.mod", "module tiny\n\ngo 1.24\n")
	write("tiny.go", text)
	test := func(body string) {
		write("tiny_test.go", "package tiny\n\nimport \"testing\"\n\nfunc TestFits(t *testing.T) {\n"+body+"}\n")
	}
	f, complaints, err := mutation.Read("tiny.go", []byte(text))
	require.NoError(t, err)
	require.Empty(t, complaints)
	all, err := f.Mutants()
	require.NoError(t, err)
	require.Len(t, all, 2)
	try := func(m mutation.Mutant) mutation.Verdict {
		v, err := m.Try(t.Context(), dir, f.Path, t.TempDir(), [][]string{{"-run", "^None$", "."}, {"."}})
		require.NoError(t, err)
		return v
	}
	test("\tif Fits(\"a\", \"b\") {\n\t\tt.Fatal()\n\t}\n")
	require.Equal(t, mutation.Verdict{By: "tiny TestFits"}, try(all[0]), "always the same")
	require.True(t, try(all[1]).Survived(), "never the same")
	test("\tpanic(Fits(\"a\", \"b\"))\n")
	require.Contains(t, try(all[0]).By, "tiny", "tests that die notice it too")
	all[0].Text = []byte("package tiny\n\nfunc Fits() {\n")
	v := try(all[0])
	require.Contains(t, v.Why, "it does not build")
	require.False(t, v.Survived())
	left, err := os.ReadFile(filepath.Join(dir, "tiny.go"))
	require.NoError(t, err)
	require.Equal(t, text, string(left))
}
