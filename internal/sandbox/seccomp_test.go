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

// call is a system call as the filter sees it. The machine that runs the filter
// here reads big endian numbers.
func call(arch, nr uint32, args ...uint32) []byte {
	in := make([]byte, 64)
	binary.BigEndian.PutUint32(in[offNumber:], nr)
	binary.BigEndian.PutUint32(in[offArch:], arch)
	for i, a := range args {
		binary.BigEndian.PutUint32(in[offArg0+8*i:], a)
	}
	return in
}

// wanted is what the filter should answer, told one call after the other.
func wanted(network, namespaces, paths bool, nr uint32, arg0, arg1 uint32) uint32 {
	refuse := append(refused(), refusedHere()...)
	if !namespaces {
		refuse = append(refuse, shared()...)
	}
	family := paths && arg0 == unix.AF_UNIX || network && (arg0 == unix.AF_INET || arg0 == unix.AF_INET6)
	switch {
	case nr > lastKnown || slices.Contains(unknown(), nr):
		return retNoSys
	case slices.Contains(refuse, nr),
		(nr == unix.SYS_CLONE || nr == unix.SYS_UNSHARE) && arg0&namespaceFlags != 0,
		nr == unix.SYS_PRLIMIT64 && !namespaces && arg0 != 0,
		nr == unix.SYS_IOCTL && (arg1 == unix.TIOCSTI || arg1 == unix.TIOCLINUX):
		return retEPERM
	case nr == unix.SYS_SOCKETPAIR && arg0 != unix.AF_UNIX:
		return retNoFam
	case nr == unix.SYS_SOCKET && !family:
		return retNoFam
	}
	return retAllow
}

// TestFilter runs the filter for every system call and the arguments that matter,
// and holds it against the list.
func TestFilter(t *testing.T) {
	arguments := []uint32{
		0, 1, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_VSOCK, 45, unix.CLONE_NEWUSER, unix.CLONE_NEWNET,
		unix.CLONE_VM | unix.CLONE_VFORK | 17, unix.CLONE_NEWTIME, unix.TIOCSTI, unix.TIOCLINUX, unix.TCGETS, ^uint32(0),
	}
	for bits := range 8 {
		network, namespaces, paths := bits&1 != 0, bits&2 != 0, bits&4 != 0
		vm, err := bpf.NewVM(filter(network, namespaces, paths))
		require.NoError(t, err)
		answer := func(in []byte) uint32 {
			got, err := vm.Run(in)
			require.NoError(t, err)
			return uint32(got)
		}
		numbers := []uint32{unix.SYS_GETPID | 0x40000000, 1 << 31, ^uint32(0)} // the first is x32's
		for nr := range uint32(lastKnown + 50) {
			numbers = append(numbers, nr)
		}
		for _, nr := range numbers {
			for _, arg := range arguments {
				in := call(auditArch, nr, arg, arg)
				require.Equal(t, wanted(network, namespaces, paths, nr, arg, arg), answer(in), "call %d with %#x", nr, arg)
			}
		}
		for _, arch := range []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, 0} {
			require.Equal(t, uint32(retKill), answer(call(arch, unix.SYS_GETPID)))
		}
		code, err := assembled(network, namespaces, paths)
		require.NoError(t, err)
		require.Zero(t, len(code)%8)
		require.Less(t, len(code)/8, 4096) // the kernel takes no longer one
	}
}

// TestHalves: also what is further away than one jump reaches is found.
func TestHalves(t *testing.T) {
	spans := []span{{0, []bpf.Instruction{bpf.RetConstant{Val: 0}}}}
	for i := uint32(1); i < 1000; i++ {
		spans = append(spans, span{i * 3, []bpf.Instruction{bpf.RetConstant{Val: i}}})
	}
	vm, err := bpf.NewVM(append([]bpf.Instruction{bpf.LoadAbsolute{Off: offNumber, Size: 4}}, halves(spans)...))
	require.NoError(t, err)
	for nr := range uint32(3100) {
		got, err := vm.Run(call(0, nr))
		require.NoError(t, err)
		require.Equal(t, int(min(nr/3, 999)), got)
	}
}
