package argschema

import (
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// maxWork bounds the schemas visited by one check, each with the subschemas it looks at. Without a bound, thirty lines
	// of references to references make a check that never ends: it is exponential in the depth of a schema.
	maxWork = 200_000
	// maxTime is for what the count does not see: long texts under slow patterns.
	maxTime = 2 * time.Second
)

// exceeded is what the budget panics with; [Schema.Validate] recovers it.
type exceeded struct{}

// budget counts the work of one check.
type budget struct {
	left  int
	until time.Time
	seen  map[*jsonschema.Schema]bool
}

func (b *budget) start() {
	b.left = maxWork
	b.until = time.Now().Add(maxTime)
}

func (b *budget) spend(work int) {
	b.left -= work
	if b.left < 0 || time.Now().After(b.until) {
		panic(exceeded{})
	}
}

// watch makes s, and every schema that it leads to, pay when it is entered. The library calls a schema's format before it
// looks at any subschema, so that is where the price is asked.
func (b *budget) watch(s *jsonschema.Schema) {
	if s == nil || b.seen[s] {
		return
	}
	if b.seen == nil {
		b.seen = map[*jsonschema.Schema]bool{}
	}
	b.seen[s] = true
	once, item, member := subschemas(s)
	for _, group := range [][]*jsonschema.Schema{once, item, member} {
		for _, sub := range group {
			b.watch(sub)
		}
	}
	price, perItem, perMember := 1+weight(once), weight(item), weight(member)
	own := s.Format
	watched := &jsonschema.Format{Validate: func(v any) error {
		work := price
		switch v := v.(type) {
		case []any:
			work += len(v) * perItem
		case map[string]any:
			work += len(v) * perMember
		}
		b.spend(work)
		if own == nil {
			return nil
		}
		return own.Validate(v)
	}}
	if own != nil {
		watched.Name = own.Name
	}
	s.Format = watched
}

// weight is what looking at each of group costs. A list of allowed values is compared before a format is looked at.
func weight(group []*jsonschema.Schema) int {
	total := 0
	for _, s := range group {
		total++
		if s.Enum != nil {
			total += len(s.Enum.Values) / 8
		}
	}
	return total
}

// subschemas are those that s applies once, to each item and to each member of a value.
func subschemas(s *jsonschema.Schema) (once, item, member []*jsonschema.Schema) {
	add := func(to *[]*jsonschema.Schema, subs ...*jsonschema.Schema) {
		for _, sub := range subs {
			if sub != nil {
				*to = append(*to, sub)
			}
		}
	}
	anything := func(to *[]*jsonschema.Schema, v any) {
		switch v := v.(type) {
		case *jsonschema.Schema:
			add(to, v)
		case []*jsonschema.Schema:
			add(to, v...)
		}
	}
	add(&once, s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else, s.ContentSchema)
	if s.DynamicRef != nil {
		add(&once, s.DynamicRef.Ref)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		add(&once, list...)
	}
	for _, m := range []map[string]*jsonschema.Schema{s.Properties, s.DependentSchemas} {
		for _, sub := range m {
			add(&once, sub)
		}
	}
	for _, dependency := range s.Dependencies {
		anything(&once, dependency)
	}
	if list, ok := s.Items.([]*jsonschema.Schema); ok {
		add(&once, list...)
	} else {
		anything(&item, s.Items)
	}
	anything(&item, s.AdditionalItems)
	add(&item, s.Items2020, s.Contains, s.UnevaluatedItems)
	for _, sub := range s.PatternProperties {
		add(&member, sub)
	}
	anything(&member, s.AdditionalProperties)
	add(&member, s.PropertyNames, s.UnevaluatedProperties)
	return once, item, member
}
