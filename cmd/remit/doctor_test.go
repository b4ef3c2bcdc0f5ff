package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/doctor"
	"github.com/remit-dev/remit/internal/disk"
	"github.com/remit-dev/remit/internal/host"
)

// odd is a root that does not give what others do.
type odd struct {
	disk.Root
	features func(disk.Features) disk.Features
	exchange func(a, b string) error
	rename   func(from, to string) error
	quiet    func() error
	lstat    error
	xattrs   map[string][]byte
	remove   error
}

func (o odd) Features() disk.Features {
	if o.features == nil {
		return o.Root.Features()
	}
	return o.features(o.Root.Features())
}

func (o odd) Exchange(a, b string) error {
	if o.exchange == nil {
		return o.Root.Exchange(a, b)
	}
	return o.exchange(a, b)
}

func (o odd) RenameNoReplace(from, to string) error {
	if o.rename == nil {
		return o.Root.RenameNoReplace(from, to)
	}
	return o.rename(from, to)
}

func (o odd) TryLease(name string) error {
	if o.quiet == nil {
		return o.Root.TryLease(name)
	}
	return o.quiet()
}

func (o odd) Lstat(name string) (disk.Info, error) {
	if strings.Contains(name, "/out/") && !errors.Is(o.lstat, disk.ErrEscape) {
		return disk.Info{}, o.lstat
	}
	return o.Root.Lstat(name)
}

func (o odd) Xattrs(name string) (map[string][]byte, error) {
	if o.xattrs != nil {
		return o.xattrs, nil
	}
	return o.Root.Xattrs(name)
}

func (o odd) Remove(name string) error { return errors.Join(o.Root.Remove(name), o.remove) }

type oddHost struct {
	host.Host
	root odd
}

func (h oddHost) OpenRoot(dir string) (disk.Root, error) {
	r, err := host.OpenRoot(h.Host, dir)
	h.root.Root = r
	return h.root, err
}

// diagnose runs doctor, checks that each line is one object, that whatever is
// not good says how to mend it, that the sum is right, and that nothing is left.
func diagnose(t *testing.T, w cli.Env, args ...string) (map[string]doctor.Finding, int) {
	t.Helper()
	workspace, state := testPlace(t)
	var out, errs bytes.Buffer
	w.Out, w.Err = &out, &errs
	code := run(t.Context(), append([]string{"doctor", "--json", "--workspace", workspace, "--state", state}, args...), w)
	require.Empty(t, errs.String())
	left, err := os.ReadDir(workspace)
	require.NoError(t, err)
	require.Empty(t, left)
	require.NoFileExists(t, filepath.Join(state, "journal.db"))

	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	found := map[string]doctor.Finding{}
	counts := map[doctor.Health]int{}
	for _, l := range lines[:len(lines)-1] {
		var f doctor.Finding
		require.NoError(t, json.Unmarshal([]byte(l), &f), l)
		require.NotEmpty(t, f.What, l)
		require.Equal(t, f.Is == doctor.Healthy, f.Fix == "", l)
		found[f.Where+" "+f.Check] = f
		counts[f.Is]++
	}
	var sum doctor.Diagnosis
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &sum))
	require.Equal(t, doctor.Diagnosis{Checks: len(lines) - 1, Weaker: counts[doctor.Weaker], Failed: counts[doctor.Failing]}, sum)
	return found, code
}

// TestDoctorProbes: what a root says of itself is tried. A promise that does not
// hold fails, one that is not made is weaker.
func TestDoctorProbes(t *testing.T) {
	all := func(disk.Features) disk.Features {
		return disk.Features{Beneath: true, Exchange: true, NoReplace: true, Lease: true, Xattrs: true, DirSync: true}
	}
	none := func(disk.Features) disk.Features { return disk.Features{} }
	unsupported := func(_, _ string) error { return disk.ErrUnsupported }
	for _, tt := range []struct {
		name, check string
		root        odd
		want        doctor.Health
		what        string
	}{
		{"no promise", "beneath", odd{features: none, lstat: disk.ErrEscape}, doctor.Weaker, "looking at each step"},
		{"no promise", "exchange", odd{features: none, exchange: unsupported, lstat: disk.ErrEscape}, doctor.Weaker, "a change made in between is lost"},
		{"no promise", "noreplace", odd{features: none, rename: unsupported, lstat: disk.ErrEscape}, doctor.Weaker, "may be replaced"},
		{"no promise", "lease", odd{features: none, lstat: disk.ErrEscape}, doctor.Weaker, "is not always seen"},
		{"no promise", "xattrs", odd{features: none, lstat: disk.ErrEscape}, doctor.Weaker, "attributes of a file that is restored are lost"},
		{"no promise", "dirsync", odd{features: none, lstat: disk.ErrEscape}, doctor.Weaker, "a name may be lost"},

		{"a link leads out", "beneath", odd{features: none}, doctor.Failing, "a path went through a link"},
		{"nothing is exchanged", "exchange", odd{exchange: func(_, _ string) error { return nil }, features: none}, doctor.Failing, "are where they were"},
		{"not supported", "exchange", odd{exchange: unsupported, features: all}, doctor.Failing, "remit relies on it"},
		{"replaces", "noreplace", odd{rename: func(_, _ string) error { return nil }, features: none}, doctor.Failing, "renamed over another"},
		{"sees nobody", "lease", odd{quiet: func() error { return nil }, features: all}, doctor.Failing, "looked closed"},
		{"sees somebody always", "lease", odd{quiet: func() error { return disk.ErrBusy }, features: all}, doctor.Failing, "in use by another process"},
		{"cannot say", "lease", odd{quiet: func() error { return disk.ErrUnsupported }, features: none}, doctor.Weaker, "is not always seen"},
		{"loses attributes", "xattrs", odd{xattrs: map[string][]byte{}, features: all}, doctor.Failing, "it went wrong"},
	} {
		t.Run(tt.check+" "+tt.name, func(t *testing.T) {
			w := testEnv(nil, nil, nil)
			w.Host = oddHost{w.Host, tt.root}
			found, code := diagnose(t, w)
			got := found["root workspace "+tt.check]
			require.Equal(t, tt.want, got.Is, "%+v", got)
			require.Contains(t, got.What, tt.what)
			if tt.want == doctor.Failing {
				require.Equal(t, int(cli.ExitInternal), code)
			}
		})
	}
}

// TestDoctorSaysWhatItLeft: a root where nothing can be removed is told of.
func TestDoctorSaysWhatItLeft(t *testing.T) {
	w := testEnv(nil, nil, nil)
	w.Host = oddHost{w.Host, odd{lstat: disk.ErrEscape, remove: errors.New("no")}}
	found, code := diagnose(t, w)
	require.Equal(t, doctor.Failing, found["root workspace clean"].Is)
	require.Contains(t, found["root workspace clean"].Fix, ".remit-stage-doctor-")
	require.Equal(t, int(cli.ExitInternal), code)
}
