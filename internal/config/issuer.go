package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/server"
)

// treeText reads what a variable or a flag says of a setting that is a tree: YAML, and so JSON too.
func treeText(s *Settings, text string, set func(*Settings, *yaml.Node) error) error {
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if document.Kind != yaml.DocumentNode || len(document.Content) != 1 {
		return fmt.Errorf("want a list, got %s", quote(text))
	}
	return set(s, document.Content[0])
}

// issuers reads the list of authorization servers. What they say is judged by package server, as a whole.
func issuers(s *Settings, node *yaml.Node) error {
	if node.Kind != yaml.SequenceNode {
		return errors.New("want a list of issuers such as [{issuer: https://login.example.org, tenant: default}]")
	}
	list := make([]server.Issuer, 0, len(node.Content))
	for _, item := range node.Content {
		issuer, err := issuer(item)
		if err != nil {
			return err
		}
		list = append(list, issuer)
	}
	s.OIDC = list
	return nil
}

func issuer(node *yaml.Node) (server.Issuer, error) {
	var i server.Issuer
	if node.Kind != yaml.MappingNode {
		return i, fmt.Errorf("want an issuer on line %d, name: value", node.Line)
	}
	seen := map[string]bool{}
	for n := 0; n+1 < len(node.Content); n += 2 {
		name, value := node.Content[n], node.Content[n+1]
		if plain := plainTree(name) && plainTree(value); !plain {
			return i, fmt.Errorf("line %d: anchors, aliases and merges are not used here", name.Line)
		}
		if seen[name.Value] {
			return i, fmt.Errorf("line %d: %s is there twice", name.Line, name.Value)
		}
		seen[name.Value] = true
		if err := issuerMember(&i, name.Value, value); err != nil {
			return i, fmt.Errorf("line %d: %s: %w", name.Line, quote(name.Value), err)
		}
	}
	if i.URL == "" {
		return i, fmt.Errorf("line %d: an issuer needs its URL: issuer", node.Line)
	}
	return i, nil
}

func issuerMember(i *server.Issuer, name string, value *yaml.Node) error {
	switch name {
	case "issuer":
		return scalar(&i.URL, value)
	case "name":
		return scalar(&i.Name, value)
	case "keys_url":
		return scalar(&i.KeysURL, value)
	case "audience":
		return wordList(&i.Audiences, value)
	case "tenant":
		return scalar(&i.Tenant, value)
	case "tenant_claim":
		return scalar(&i.TenantClaim, value)
	case "tenants":
		pairs, err := stringMapOf(value)
		i.Tenants = map[string]sallyport.TenantID{}
		for from, to := range pairs {
			i.Tenants[from] = sallyport.TenantID(to)
		}
		return err
	case "unknown_tenant":
		var text string
		if err := scalar(&text, value); err != nil {
			return err
		}
		if text != "refuse" && text != "create" {
			return errors.New("want refuse or create")
		}
		i.CreateTenants = text == "create"
		return nil
	case "teams_claim":
		return scalar(&i.TeamsClaim, value)
	case "scopes":
		return wordList(&i.Scopes, value)
	case "roles_claim":
		return scalar(&i.RolesClaim, value)
	case "roles":
		return roles(&i.Roles, value)
	case "token_types":
		return wordList(&i.TokenTypes, value)
	case "algorithms":
		return wordList(&i.Algorithms, value)
	case "clock_skew":
		var text string
		if err := scalar(&text, value); err != nil {
			return err
		}
		return duration(&i.ClockSkew, text)
	default:
		return errors.New("an issuer has no such setting")
	}
}

func scalar[T ~string](target *T, node *yaml.Node) error {
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" || node.Value == "" {
		return errors.New("want a text")
	}
	*target = T(node.Value)
	return nil
}

// wordList reads one text or a list of them.
func wordList[T ~string](target *[]T, node *yaml.Node) error {
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	list := make([]T, len(nodes))
	for n, item := range nodes {
		if err := scalar(&list[n], item); err != nil {
			return errors.New("want a text or a list of texts")
		}
	}
	*target = list
	return nil
}

func stringMapOf(node *yaml.Node) (map[string]string, error) {
	if node.Kind != yaml.MappingNode {
		return nil, errors.New("want name: value pairs")
	}
	return stringMap(node)
}

func roles(target *map[string][]sallyport.Scope, node *yaml.Node) error {
	if node.Kind != yaml.MappingNode {
		return errors.New("want role: [scope] pairs")
	}
	all := map[string][]sallyport.Scope{}
	for n := 0; n+1 < len(node.Content); n += 2 {
		var role string
		if err := scalar(&role, node.Content[n]); err != nil {
			return err
		}
		if _, twice := all[role]; twice {
			return fmt.Errorf("%s is there twice", quote(role))
		}
		var scopes []sallyport.Scope
		if err := wordList(&scopes, node.Content[n+1]); err != nil {
			return err
		}
		all[role] = scopes
	}
	*target = all
	return nil
}

// plainTree reports whether node has no anchor, alias or merge in it.
func plainTree(node *yaml.Node) bool {
	return node.Kind != yaml.AliasNode && node.Anchor == "" && node.Tag != "!!merge" &&
		!slices.ContainsFunc(node.Content, func(child *yaml.Node) bool { return !plainTree(child) })
}
