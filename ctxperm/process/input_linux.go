package process

import (
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// sharePipe opens a pipe that can only be read and has no name once more, so
// that the program can change nothing by it, not even whether the caller's end
// blocks. For another file it returns nil.
func sharePipe(f *os.File) (shared *os.File, err error) {
	err = onDescriptor(f, func(fd int) error {
		var on unix.Statfs_t
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0) //nolint:gosec // a descriptor
		if err != nil || flags&unix.O_ACCMODE != unix.O_RDONLY {
			return err
		}
		if err := unix.Fstatfs(fd, &on); err != nil || on.Type != unix.PIPEFS_MAGIC {
			return err
		}
		// Without O_NONBLOCK this would wait for a writer.
		again, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil //nolint:nilerr // the pipe of another user is copied
		}
		if err := unix.SetNonblock(again, false); err != nil {
			_ = unix.Close(again)
			return err
		}
		shared = os.NewFile(uintptr(again), f.Name()) //nolint:gosec // a descriptor
		return nil
	})
	return shared, err
}

// inputSource is a file of the caller that feeds a program's input. It is read
// only while the program can read.
type inputSource struct {
	file         *os.File
	woken, waker *os.File // a pipe whose closed end stops the copy
	rest         *os.File // another end of the program's pipe, which tells what it did not read; nil: file is not on disk
	start        int64    // position of a file on disk
	copied       int64    // bytes written to the pipe
}

// newInputSource returns the source for the reading end of a pipe.
func newInputSource(f, theirs *os.File) (_ *inputSource, err error) {
	s := &inputSource{file: f}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.woken, s.waker, err = os.Pipe(); err != nil {
		return nil, err
	}
	is, err := f.Stat()
	if err != nil || !is.Mode().IsRegular() {
		return s, err
	}
	if s.start, err = f.Seek(0, io.SeekCurrent); err != nil {
		return nil, err
	}
	err = onDescriptor(theirs, func(fd int) error {
		dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3) //nolint:gosec // a descriptor
		if err == nil {
			s.rest = os.NewFile(uintptr(dup), "unread") //nolint:gosec // a descriptor
		}
		return err
	})
	return s, err
}

// copyTo copies until the end of the file, until the program reads no more, or
// until stop. A terminal can be read again later, so only its errors end it.
func (s *inputSource) copyTo(into *os.File, terminal bool) {
	buf := make([]byte, 32<<10)
	for s.wait(into, terminal) {
		n, err := s.read(buf)
		if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 || err != nil {
			return
		}
		wrote, err := into.Write(buf[:n])
		s.copied += int64(wrote)
		if err != nil {
			return
		}
	}
}

func (s *inputSource) read(buf []byte) (n int, err error) {
	err = onDescriptor(s.file, func(fd int) (err error) {
		n, err = unix.Read(fd, buf)
		return err
	})
	return n, err
}

// wait waits until the file can be read. It returns false when the copy must
// end.
func (s *inputSource) wait(into *os.File, terminal bool) (readable bool) {
	var fds []unix.PollFd
	add := func(f *os.File, events int16) {
		_ = onDescriptor(f, func(fd int) error {
			fds = append(fds, unix.PollFd{Fd: int32(fd), Events: events}) //nolint:gosec // a descriptor
			return nil
		})
	}
	add(s.woken, 0)
	add(s.file, unix.POLLIN)
	if !terminal {
		add(into, 0) // an error: it has no reader
	}
	for {
		_, err := unix.Poll(fds, -1)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || fds[0].Revents != 0 || len(fds) > 2 && fds[2].Revents != 0 {
			return false
		}
		return true
	}
}

func (s *inputSource) stop() { _ = s.waker.Close() }

// onDisk reports whether the file has a position.
func (s *inputSource) onDisk() bool { return s != nil && s.rest != nil }

// rewind moves the file to the position up to which the program has read.
func (s *inputSource) rewind() {
	unread := 0
	err := onDescriptor(s.rest, func(fd int) (err error) {
		unread, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
		return err
	})
	if err == nil {
		_, _ = s.file.Seek(s.start+max(s.copied-int64(unread), 0), io.SeekStart) // a program can write to its own pipe
	}
}

func (s *inputSource) close() {
	if s == nil {
		return
	}
	for _, f := range []*os.File{s.woken, s.waker, s.rest} {
		_ = f.Close()
	}
}
