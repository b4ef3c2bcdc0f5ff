//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHierarchies checks that control groups are found where they are mounted,
// also if a container shows a part of them.
func TestHierarchies(t *testing.T) {
	const both = "35 24 0:30 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n" +
		"36 24 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
		"37 24 0:32 / /sys/fs/cgroup/cpu rw,relatime shared:3 - cgroup cgroup rw,cpu,cpuacct\n"
	for _, tt := range []struct {
		name, cgroup, mounts string
		want                 []hierarchy
	}{
		{"none", "", "", nil},
		{"not mounted", "0::/user.slice\n", "", nil},
		{
			"version 2", "0::/user.slice/a.scope\n", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
			[]hierarchy{{version: 2, dir: "/sys/fs/cgroup/user.slice/a.scope"}},
		},
		{
			"a part of it", "0::/docker/abc/x\n", "30 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			[]hierarchy{{version: 2, dir: "/sys/fs/cgroup/x"}},
		},
		{"another part of it", "0::/docker/abc\n", "30 23 0:26 /docker/xyz /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", nil},
		{"both", "9:memory:/m\n8:pids:/\n4:cpu,cpuacct:/c\n1:name=systemd:/\n0::/\n", both, []hierarchy{
			{1, "/sys/fs/cgroup/memory/m", []string{"memory"}},
			{1, "/sys/fs/cgroup/cpu/c", []string{"cpu", "cpuacct"}},
			{version: 2, dir: "/sys/fs/cgroup/unified"},
		}},
		{"nonsense", "x\n\n0::\n", "x - y\n\n", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.want, hierarchies(tt.cgroup, tt.mounts))
		})
	}
}

// TestMemory checks that a total memory bound holds with a control group.
// Without one, the report says so, and a run that requires every layer is
// refused.
func TestMemory(t *testing.T) {
	needStrict(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	spec := Spec{
		Argv: []string{exe}, Env: []string{probeEnv + "=use much memory"}, System: append(System(), exe), Limits: Limits{Memory: 48 << 20},
	}
	p, err := Start(context.Background(), "", spec, Stdio{})
	require.NoError(t, err)
	exit, err := p.Wait()
	require.NoError(t, err)
	require.NoError(t, p.Close())
	if slices.Contains(p.Reached().Group, "memory") {
		for _, dir := range p.group.dirs {
			require.NoDirExists(t, dir)
		}
		require.Equal(t, "killed", exit.Signal)
		require.Equal(t, Strict, p.Reached().Level)
		return
	}
	require.Zero(t, exit.Code)
	require.Equal(t, Partial, p.Reached().Level)
	require.True(t, slices.ContainsFunc(p.Reached().Missing, func(m string) bool { return strings.HasPrefix(m, "limit of memory: ") }))
	spec.Require = Strict
	_, err = Start(context.Background(), "", spec, Stdio{})
	require.ErrorIs(t, err, ErrLevel)
}

// TestGroup checks that exactly the functions of a hierarchy are used, and that
// a group is removed with the run. Plain folders replace those of the kernel.
func TestGroup(t *testing.T) {
	dir := t.TempDir()
	g := &group{}
	require.NoError(t, g.add(hierarchy{version: 1, dir: dir, controllers: []string{"cpu"}}, "g", 1, 1))
	require.Empty(t, g.dirs)
	require.NoError(t, g.add(hierarchy{version: 2, dir: dir}, "g", 1, 1))
	require.Equal(t, []string{filepath.Join(dir, "g")}, g.dirs)
	require.Empty(t, g.holds)
	require.Error(t, g.enter(1))
	g.kill()
	g.remove()
	require.NoDirExists(t, filepath.Join(dir, "g"))
	require.Error(t, g.add(hierarchy{version: 2, dir: filepath.Join(dir, "none")}, "g", 1, 1))
	require.NoError(t, g.add(hierarchy{version: 1, dir: dir, controllers: []string{"memory"}}, "h", 1, 1))
	var none *group
	none.kill()
	none.remove()
}
