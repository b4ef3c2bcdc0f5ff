package process

import (
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the terminal of a program, which stands for one of its caller.
type terminal struct {
	master, slave *os.File
	fds           [3]bool       // the program's standard files that are the terminal
	screen        *os.File      // the caller's terminal for output
	keyboard      *os.File      // the caller's terminal for input; nil: none
	mode          *unix.Termios // mode of keyboard before it was changed; nil: it was not
}

// openTerminal opens a terminal for a program if its caller's output is one.
func openTerminal(a *Attachment, stdin io.Reader) (_ *terminal, err error) {
	screen, is := terminalOf(a.Stdout)
	if !is {
		return nil, nil
	}
	t := &terminal{screen: screen, fds: [3]bool{1: true}}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	_, t.fds[2] = terminalOf(a.Stderr)
	if keyboard, is := terminalOf(stdin); is && !inBackground(keyboard) {
		t.keyboard, t.fds[0] = keyboard, true
	}
	if err := t.open(); err != nil {
		return nil, fmt.Errorf("the program's terminal: %w", err)
	}
	t.resize()
	return t, t.setModes()
}

// terminalOf returns the file of a reader or writer that is a terminal.
func terminalOf(stream any) (*os.File, bool) {
	f, ok := stream.(*os.File)
	if !ok || f == nil {
		return nil, false
	}
	_, err := modeOf(f)
	return f, err == nil
}

func (t *terminal) open() (err error) {
	if t.master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return err
	}
	return onDescriptor(t.master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		slave, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC) //nolint:gosec // a descriptor
		if errno != 0 {
			return errno
		}
		t.slave = os.NewFile(slave, "terminal")
		return nil
	})
}

// setModes gives the program's terminal the mode of the caller's. With a
// keyboard, the program's terminal does all that a terminal does with what is
// typed and printed, and the caller's does none of it.
func (t *terminal) setModes() error {
	from := t.screen
	if t.keyboard != nil {
		from = t.keyboard
	}
	mode, err := modeOf(from)
	if err != nil {
		return err
	}
	its := *mode
	if t.keyboard == nil {
		its.Oflag &^= unix.OPOST
	}
	if err := setMode(t.slave, &its); err != nil || t.keyboard == nil {
		return err
	}
	raw := *mode
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	t.mode = mode
	return setMode(t.keyboard, &raw)
}

func modeOf(f *os.File) (mode *unix.Termios, err error) {
	err = onDescriptor(f, func(fd int) (err error) {
		mode, err = unix.IoctlGetTermios(fd, unix.TCGETS)
		return err
	})
	return mode, err
}

func setMode(f *os.File, mode *unix.Termios) error {
	return onDescriptor(f, func(fd int) error { return unix.IoctlSetTermios(fd, unix.TCSETSW, mode) })
}

// onDescriptor calls fn with the descriptor of a file. Fd of the file would
// make it block.
func onDescriptor(f *os.File, fn func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = fn(int(fd)) }) //nolint:gosec // a descriptor
	if failed != nil {
		return failed
	}
	return err
}

// has reports whether a standard file of the program is its terminal.
func (t *terminal) has(fd int) bool { return t != nil && t.fds[fd] }

// resize gives the program's terminal the size of the caller's.
func (t *terminal) resize() {
	_ = onDescriptor(t.screen, func(fd int) error {
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err != nil {
			return err
		}
		return onDescriptor(t.master, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	})
}

func (p *pipes) resize() {
	if p.tty != nil {
		p.tty.resize()
	}
}

// close closes the terminal, and restores the mode of the caller's.
func (t *terminal) close() {
	if t == nil {
		return
	}
	_, _ = t.master.Close(), t.slave.Close()
	if t.mode != nil {
		_ = setMode(t.keyboard, t.mode)
	}
}

func isResize(sig syscall.Signal) bool { return sig == syscall.SIGWINCH }

// inBackground reports whether a file is the terminal of this process's
// session, and another process group has it. Its use would stop this process.
func inBackground(f *os.File) bool {
	var group int
	err := onDescriptor(f, func(fd int) (err error) {
		group, err = unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		return err
	})
	return err == nil && group != unix.Getpgrp()
}
