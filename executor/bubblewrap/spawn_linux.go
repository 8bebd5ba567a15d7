//go:build amd64 || arm64

package bubblewrap

import (
	"errors"
	"os"
	"runtime"
)

// spawner starts processes from one OS thread that lives as long as the executor.
//
// A sandbox asks the kernel to die with its parent, and to the kernel the parent is a thread: had an ordinary goroutine
// started it, a healthy run would be killed whenever the Go runtime retires that thread. It is also the thread that
// steps into a run's v1 control groups, so that the child is born inside.
type spawner struct {
	jobs chan spawnJob
	done chan struct{}
}

type spawnJob struct {
	argv   []string
	attr   *os.ProcAttr
	group  *group
	answer chan spawned
}

type spawned struct {
	process *os.Process
	err     error
}

var errSpawnerClosed = errors.New("the executor is closed")

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan spawnJob), done: make(chan struct{})}
	go s.loop()
	return s
}

func (s *spawner) loop() {
	// Never unlocked: when this goroutine returns, the thread ends with it.
	runtime.LockOSThread()
	for {
		select {
		case job := <-s.jobs:
			job.answer <- job.start()
		case <-s.done:
			return
		}
	}
}

func (j spawnJob) start() spawned {
	if err := j.group.enter(); err != nil {
		return spawned{err: errors.Join(err, j.group.leave())}
	}
	process, err := os.StartProcess(j.argv[0], j.argv, j.attr)
	if leaveErr := j.group.leave(); err == nil && leaveErr != nil {
		// The child is where it belongs; that this thread is not must not pass unnoticed, or the group stays for ever.
		_ = process.Kill()
		_, _ = process.Wait()
		return spawned{err: leaveErr}
	}
	return spawned{process, err}
}

// start runs argv in group.
func (s *spawner) start(argv []string, attr *os.ProcAttr, g *group) (*os.Process, error) {
	job := spawnJob{argv, attr, g, make(chan spawned, 1)}
	select {
	case s.jobs <- job:
	case <-s.done:
		return nil, errSpawnerClosed
	}
	answer := <-job.answer
	return answer.process, answer.err
}

// close ends the thread, and with it every sandbox that is still running.
func (s *spawner) close() { close(s.done) }
