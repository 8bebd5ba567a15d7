package bucket

import (
	"strconv"
	"testing"
	"time"
)

func at(d time.Duration) time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(d) }

func TestSet(t *testing.T) {
	t.Parallel()
	s := NewSet(Rate{Amount: 3, Per: time.Minute})
	wait := func(name string, when, want time.Duration) {
		t.Helper()
		if got := s.Wait(name, 1, at(when)); got != want {
			t.Errorf("%s at %s: waits %s, want %s", name, when, got, want)
		}
	}
	for range 3 {
		wait("a", 0, 0)
		s.Spend("a", 1, at(0))
	}
	wait("a", 0, 20*time.Second)
	wait("b", 0, 0)
	wait("a", 5*time.Second, 15*time.Second)
	wait("a", 20*time.Second, 0)
	s.Spend("a", 1, at(20*time.Second))
	wait("a", 20*time.Second, 20*time.Second)
	// More than there is may be spent after the fact, and is waited for.
	s.Spend("a", 6, at(20*time.Second))
	wait("a", 20*time.Second, 140*time.Second)
	s.Spend("a", -6, at(20*time.Second))
	wait("a", 20*time.Second, 20*time.Second)
	// Nothing is saved up beyond the amount, and a clock that goes back gives nothing.
	wait("a", time.Hour, 0)
	s.Spend("a", 3, at(time.Hour))
	wait("a", time.Hour, 20*time.Second)
	wait("a", time.Hour-time.Minute, 80*time.Second)
	if got := s.Wait("c", 99, at(0)); got != 0 {
		t.Errorf("more than the amount: waits %s, want 0 with a full bucket", got)
	}
}

func TestNoBound(t *testing.T) {
	t.Parallel()
	s := NewSet(Rate{})
	s.Spend("a", 1e9, at(0))
	if got := s.Wait("a", 1, at(0)); got != 0 || s.Len() != 0 {
		t.Errorf("waits %s with %d names", got, s.Len())
	}
}

// Names that are full are forgotten; when none is, a new name waits and the others go on.
func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	s := NewSet(Rate{Amount: 2, Per: time.Minute})
	s.max = 10
	for i := range 10 {
		s.Spend(strconv.Itoa(i), 1, at(0))
	}
	if got := s.Wait("new", 1, at(0)); got == 0 {
		t.Error("an eleventh name is kept")
	}
	if got := s.Wait("3", 1, at(0)); got != 0 {
		t.Errorf("a name that is kept waits %s", got)
	}
	if got := s.Wait("new", 1, at(time.Minute)); got != 0 || s.Len() != 0 {
		t.Errorf("after a minute it waits %s beside %d names", got, s.Len())
	}
	s.Spend("x", 1, at(0))
	s.Spend("x", -1, at(0))
	if s.Len() != 0 {
		t.Errorf("%d names after everything was given back", s.Len())
	}
}
