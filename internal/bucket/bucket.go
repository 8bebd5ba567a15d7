// Package bucket counts what is used over time against what may be used, by name.
//
// It owns the arithmetic of token buckets and the bound on how many it keeps. It leaves what is counted, for whom, and locking to
// its users. Its one invariant: over any stretch of time a name takes at most its amount once and what that time gives back.
package bucket

import (
	"math"
	"time"
)

// Rate is how much may be used: Amount at once, and as much again in every Per. An Amount of zero is no bound.
type Rate struct {
	Amount float64
	Per    time.Duration
}

// sweepEvery is how often a full Set looks for names to forget: whoever sends new names must not make it look at all of them
// each time.
const sweepEvery = time.Second

// maxNames bounds the names of one Set that have used something lately.
const maxNames = 100_000

// Set holds one bucket for each name. It is not safe for concurrent use: its owner checks several and then takes, under one lock.
type Set struct {
	rate    Rate
	max     int
	buckets map[string]bucket
	swept   time.Time // when names were last forgotten because it was tight
}

type bucket struct {
	left float64 // below zero after more was spent than there was
	at   time.Time
}

// NewSet returns a Set in which every name has its full amount.
func NewSet(rate Rate) *Set { return &Set{rate: rate, max: maxNames, buckets: map[string]bucket{}} }

// left is what name has at the instant now.
func (s *Set) left(name string, now time.Time) float64 {
	b, known := s.buckets[name]
	if !known {
		return s.rate.Amount
	}
	return math.Min(s.rate.Amount, b.left+s.rate.Amount*float64(now.Sub(b.at))/float64(s.rate.Per))
}

// Wait is how long it takes until name has n again; zero when it has. More than the amount is never there, so n counts as the
// amount then. A new name beyond the bound on names waits for others to be forgotten.
func (s *Set) Wait(name string, n float64, now time.Time) time.Duration {
	if s.rate.Amount <= 0 {
		return 0
	}
	if _, known := s.buckets[name]; !known && !s.room(now) {
		return time.Second
	}
	missing := math.Min(n, s.rate.Amount) - s.left(name, now)
	if missing <= 0 {
		return 0
	}
	// Rounded up, so that who waits as long is not told to wait again.
	return time.Duration(math.Ceil(missing / s.rate.Amount * float64(s.rate.Per)))
}

// Spend takes n from name, whether or not it is there; a negative n gives back.
func (s *Set) Spend(name string, n float64, now time.Time) {
	if s.rate.Amount <= 0 {
		return
	}
	left := math.Min(s.rate.Amount, s.left(name, now)-n)
	if left >= s.rate.Amount {
		delete(s.buckets, name) // a full bucket is the same as none
		return
	}
	s.buckets[name] = bucket{left: left, at: now}
}

// room reports whether another name can be kept, and forgets those that have their full amount when it is tight.
func (s *Set) room(now time.Time) bool {
	if len(s.buckets) < s.max {
		return true
	}
	if since := now.Sub(s.swept); since >= 0 && since < sweepEvery {
		return false
	}
	s.swept = now
	for name := range s.buckets {
		if s.left(name, now) >= s.rate.Amount {
			delete(s.buckets, name)
		}
	}
	return len(s.buckets) < s.max
}

// Has reports whether name has used something lately.
func (s *Set) Has(name string) bool {
	_, known := s.buckets[name]
	return known
}

// Len is how many names are kept.
func (s *Set) Len() int { return len(s.buckets) }
