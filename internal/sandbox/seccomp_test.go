//go:build linux && (amd64 || arm64)

package sandbox

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// call returns a system call as the filter sees it. The machine that runs the
// filter in this test reads big-endian numbers.
func call(arch, nr uint32, args ...uint32) []byte {
	in := make([]byte, 64)
	binary.BigEndian.PutUint32(in[offNumber:], nr)
	binary.BigEndian.PutUint32(in[offArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(in[offArg0+8*i:], a)
	}
	return in
}

// wanted returns the expected result of the filter, call by call.
func wanted(d filterOptions, nr uint32, arg [3]uint32) uint32 {
	refusal := func(value uint32) uint32 {
		if d.report {
			return retNotify
		}
		return value
	}
	_, no := refused()[nr]
	if !d.namespaces {
		no = no || slices.Contains(shared(), nr)
	}
	switch {
	case nr > lastKnown || slices.Contains(unknown(), nr):
		return retNoSys
	case d.report && d.moves && slices.Contains(moving(), nr):
		return retNotify
	case no,
		(nr == unix.SYS_CLONE || nr == unix.SYS_UNSHARE) && arg[0]&namespaceFlags != 0,
		nr == unix.SYS_PRLIMIT64 && !d.namespaces && arg[0] != 0,
		nr == unix.SYS_IOCTL && (arg[1] == unix.TIOCSTI || arg[1] == unix.TIOCLINUX):
		return refusal(retEPERM)
	case nr == unix.SYS_SOCKETPAIR && arg[0] != unix.AF_UNIX:
		return refusal(retNoFam)
	case nr == unix.SYS_SOCKET && d.loopback && !d.network && (arg[0] == unix.AF_INET || arg[0] == unix.AF_INET6) &&
		arg[1]&0xf == unix.SOCK_STREAM && arg[2] == unix.IPPROTO_MPTCP:
		return retNoProto
	case nr == unix.SYS_SOCKET && !wantedSocket(d, arg):
		return refusal(retNoFam)
	}
	return retAllow
}

func wantedSocket(d filterOptions, arg [3]uint32) bool {
	switch arg[0] {
	case unix.AF_UNIX:
		return d.paths
	case unix.AF_INET, unix.AF_INET6:
		kind := arg[1] & 0xf
		return d.network || d.loopback && (kind == unix.SOCK_STREAM && (arg[2] == 0 || arg[2] == 6) || kind == unix.SOCK_DGRAM && (arg[2] == 0 || arg[2] == 17))
	case unix.AF_NETLINK:
		return !d.network && d.loopback && arg[2] == unix.NETLINK_ROUTE
	}
	return false
}

// TestFilter runs the filter for every system call with the relevant arguments,
// and compares the results with the list.
func TestFilter(t *testing.T) {
	arguments := []uint32{
		0, 1, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_VSOCK, 45, unix.CLONE_NEWUSER, unix.CLONE_NEWNET,
		unix.CLONE_VM | unix.CLONE_VFORK | 17, unix.CLONE_NEWTIME, unix.TIOCSTI, unix.TIOCLINUX, unix.TCGETS, ^uint32(0),
	}
	for bits := range 64 {
		d := filterOptions{network: bits&1 != 0, namespaces: bits&2 != 0, paths: bits&4 != 0, loopback: bits&8 != 0, report: bits&16 != 0, moves: bits&32 != 0}
		vm, err := bpf.NewVM(d.filter())
		require.NoError(t, err)
		answer := func(in []byte) uint32 {
			got, err := vm.Run(in)
			require.NoError(t, err)
			return uint32(got)
		}
		for _, family := range arguments {
			for _, kind := range []uint32{0, 1, 2, 3, 4, 5, 10, 15, 1 | unix.SOCK_CLOEXEC, 2 | unix.SOCK_NONBLOCK, 1 | 16} {
				for _, protocol := range []uint32{0, 1, 4, 6, 16, 17, 58, 132, 136, 255, 262, ^uint32(0)} {
					arg := [3]uint32{family, kind, protocol}
					require.Equal(t, wanted(d, unix.SYS_SOCKET, arg), answer(call(auditArch, unix.SYS_SOCKET, arg[:]...)), "%+v: socket %d", d, arg)
				}
			}
		}
		numbers := []uint32{unix.SYS_GETPID | 0x40000000, 1 << 31, ^uint32(0)} // the first is an x32 number
		for nr := range uint32(lastKnown + 50) {
			numbers = append(numbers, nr)
		}
		for _, nr := range numbers {
			for _, arg := range arguments {
				got, want := answer(call(auditArch, nr, arg, arg, arg)), wanted(d, nr, [3]uint32{arg, arg, arg})
				if got != want {
					require.Equal(t, want, got, "%+v: call %d with %#x", d, nr, arg)
				}
			}
		}
		for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
			require.Equal(t, uint32(retKill), answer(call(arch, unix.SYS_GETPID)))
		}
		code, err := assembled(d)
		require.NoError(t, err)
		require.Zero(t, len(code)%8)
		require.Less(t, len(code)/8, 4096) // the maximum in the kernel
	}
}

// TestHalves checks that the filter finds numbers beyond the range of one jump.
func TestHalves(t *testing.T) {
	spans := []syscallRange{{0, []bpf.Instruction{bpf.RetConstant{Val: 0}}}}
	for i := uint32(1); i < 1000; i++ {
		spans = append(spans, syscallRange{i * 3, []bpf.Instruction{bpf.RetConstant{Val: i}}})
	}
	vm, err := bpf.NewVM(append([]bpf.Instruction{bpf.LoadAbsolute{Off: offNumber, Size: 4}}, halves(spans)...))
	require.NoError(t, err)
	for nr := range uint32(3100) {
		got, err := vm.Run(call(0, nr))
		require.NoError(t, err)
		require.Equal(t, int(min(nr/3, 999)), got)
	}
}
