#include "gateway/policy/scope.h"

#include <chrono>

#include <gtest/gtest.h>

namespace hive::policy {
namespace {

TEST(Glob, WithoutAStarIsTheNameItself) {
  EXPECT_TRUE(glob_matches("edge-1", "edge-1"));
  for (const char* name : {"edge-10", "edge-", "Edge-1", "xedge-1", ""})
    EXPECT_FALSE(glob_matches("edge-1", name)) << name;
  EXPECT_TRUE(glob_matches("", ""));
  EXPECT_FALSE(glob_matches("", "x"));
}

TEST(Glob, AStarStandsForAnythingAndNothingElseDoes) {
  for (const char* pattern : {"*", "**", "edge-*", "*-1", "e*1", "edge-1*", "*edge-1", "e*g*-*", "*e*d*g*e*", "ed*ge*"})
    EXPECT_TRUE(glob_matches(pattern, "edge-1")) << pattern;
  for (const char* pattern :
       {"edge-?", "edge-[1]", "e*x*", "*2", "edge-1*1", "ab*", "*edge-1*x", "e?ge*", ".*", "edge-\\*"})
    EXPECT_FALSE(glob_matches(pattern, "edge-1")) << pattern;
  EXPECT_FALSE(glob_matches("ab*ba", "aba"));
  EXPECT_TRUE(glob_matches("ab*ba", "abba"));
  EXPECT_TRUE(glob_matches("*aab", "aaaab"));
  EXPECT_TRUE(glob_matches("*ab*ab*", "xabyab"));
  EXPECT_FALSE(glob_matches("*ab*ab*", "xaby"));
}

TEST(Glob, ManyStarsTakeNoLongerThanTheTextIsLong) {
  std::string pattern;
  for (int i = 0; i < 50'000; ++i)
    pattern += "a*";
  pattern += "b";
  std::string name(100'000, 'a');
  auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(glob_matches(pattern, name));
  EXPECT_FALSE(glob_matches("*" + std::string(50'000, 'a') + "b*", name));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(Scope, ReachesAgentsByNameOrByTag) {
  AgentTags tags = {{"edge-1", {"lab", "eu"}}, {"edge-2", {"prod"}}};
  Scope scope{{"gate-*"}, {"la*"}, {"*"}, "scoped_tokens[0]"};
  EXPECT_EQ(reach_of(scope, tags, "gate-7").agent, "gate-*");
  EXPECT_EQ(reach_of(scope, tags, "edge-1").tag, "la*");
  EXPECT_FALSE(reach_of(scope, tags, "edge-2"));
  EXPECT_FALSE(reach_of(scope, tags, "edge-3"));
  EXPECT_FALSE(reach_of(scope, tags, ""));
  EXPECT_FALSE(reach_of({{}, {}, {"*"}, ""}, tags, "edge-1"));
}

TEST(Scope, OnlyAStarHoldsAgentsThatDoNotExistYet) {
  EXPECT_TRUE(reaches_all_agents({{"edge-1", "*"}, {}, {}, ""}));
  EXPECT_TRUE(reaches_all_agents({{"**"}, {}, {}, ""}));
  EXPECT_FALSE(reaches_all_agents({{"edge-*", ""}, {"*"}, {"*"}, ""}));
}

TEST(NamedAgents, AreReadFromEveryMemberThatNamesThem) {
  NamedAgents named = agents_named_in(
      R"({"agent":"a","agent_id":"b","agents":["c","d"],"agent_ids":"e","prompt":"f","nested":{"agent":"g"}})");
  EXPECT_EQ(named.ids, (std::vector<std::string>{"a", "b", "c", "d", "e"}));
  EXPECT_FALSE(named.all);
  EXPECT_FALSE(named.unclear);
}

TEST(NamedAgents, DoNotHideBehindEscapes) {
  EXPECT_EQ(agents_named_in(R"({"\u0061gent":"edge\u002d1"})").ids, std::vector<std::string>{"edge-1"});
}

TEST(NamedAgents, CountInEverySpellingThatSomeProgramTakesForTheirs) {
  for (const char* key : {"Agent", "AGENT_ID", "agentS", "agent\u017f", "\\u0041gent_ids"})
    EXPECT_EQ(agents_named_in(std::string("{\"") + key + R"(":"edge-1"})").ids, std::vector<std::string>{"edge-1"})
        << key;
  EXPECT_TRUE(agents_named_in(R"({"All_Agents":true})").all);
  for (const char* key : {"agenti", "agent-id", "gent", "agent_idss"})
    EXPECT_TRUE(agents_named_in(std::string("{\"") + key + R"(":"edge-1"})").ids.empty()) << key;
}

TEST(NamedAgents, AllAgentsIsWhateverIsNotClearlyFalse) {
  for (const char* text : {"true", "1", "\"false\"", "[]", "0"})
    EXPECT_TRUE(agents_named_in(std::string(R"({"all_agents":)") + text + "}").all) << text;
  for (const char* text : {"false", "null"})
    EXPECT_FALSE(agents_named_in(std::string(R"({"all_agents":)") + text + "}").all) << text;
}

TEST(NamedAgents, AreUnclearWhereTheyAreNoNames) {
  for (const char* text : {R"({"agent":1})", R"({"agents":[["a"]]})", R"({"agent_ids":{"a":1}})",
                           R"({"agents":[null]})", R"({"agent":"a","agent":"b"})", R"(["agent"])", R"({"agent")"})
    EXPECT_TRUE(agents_named_in(text).unclear) << text;
  std::string many = R"({"agents":["a")";
  for (int i = 0; i < 1024; ++i)
    many += R"(,"a")";
  EXPECT_TRUE(agents_named_in(many + "]}").unclear);
  for (const char* text : {R"({"agent":null,"agents":null})", R"({"agents":[]})", "{}", R"({"name":"uptime"})"}) {
    NamedAgents named = agents_named_in(text);
    EXPECT_TRUE(named.ids.empty() && !named.all && !named.unclear) << text;
  }
}

}  // namespace
}  // namespace hive::policy
