#include "store/lease/lease_counter.h"

#include <algorithm>

#include "core/int128.h"

namespace weir::store::lease {
namespace {

using core::CeilDiv64;
using core::Int128;

int64_t SaturatedLevel(Int128 level) {
  return static_cast<int64_t>(std::clamp<Int128>(level, 0, kMaxLevelTicks));
}

// Lets time give back until `to_us`. A clock that went back a little gives nothing back twice.
void Decay(LeaseState* state, int64_t to_us) {
  if (to_us <= state->base_us) return;
  state->level =
      SaturatedLevel(state->level - Int128{to_us - state->base_us} * state->ticks_per_us);
  state->base_us = to_us;
}

// What was written by a clock that ran far ahead moves back to this one, as it stood then.
void Heal(LeaseState* state, int64_t now_us) {
  const int64_t ahead_us = state->base_us - now_us;
  if (ahead_us <= kHealSlackUs) return;
  state->base_us -= ahead_us;
  state->born_us = std::min(state->born_us, now_us);
  state->drain_until_us -= ahead_us;
  for (Holder& holder : state->holders) {
    holder.until_us -= ahead_us;
  }
}

// A reserve that is let go arrives as used units, so that what is available does not rise by it.
void SetAllotment(LeaseState* state, Holder* holder, int64_t allotment, bool reserved) {
  const int64_t before = holder->reserved ? holder->allotment : 0;
  const int64_t after = reserved ? allotment : 0;
  if (after < before) {
    state->level = SaturatedLevel(state->level + Int128{before - after} * state->ticks_per_unit);
  }
  holder->allotment = allotment;
  holder->reserved = reserved;
}

void GiveUnits(LeaseState* state, int64_t units) {
  state->level = SaturatedLevel(state->level - Int128{units} * state->ticks_per_unit);
}

// Each lease ends at its own instant, whenever somebody looks: the order of looks changes nothing.
void Expire(LeaseState* state, int64_t now_us) {
  for (;;) {
    const auto first = std::ranges::min_element(state->holders, {}, &Holder::until_us);
    if (first == state->holders.end() || first->until_us > now_us) return;
    Decay(state, first->until_us);
    SetAllotment(state, &*first, 0, false);
    state->holders.erase(first);
  }
}

// Another definition of the limit: as many units stay used, rounded up by less than a tick, or by
// less than a unit where the product would not fit a script's number.
void Carry(LeaseState* state, const LeaseTerms& terms) {
  const int64_t from = state->ticks_per_unit, to = terms.ticks_per_unit;
  if (from != to) {
    const int64_t whole = state->level / from, rest = state->level % from;
    const Int128 product = Int128{rest} * to;
    const int64_t part =
        product < (Int128{1} << 53) ? CeilDiv64(static_cast<int64_t>(product), from) : to;
    state->level = SaturatedLevel(Int128{whole} * to + part);
  }
  state->ticks_per_unit = to;
  state->ticks_per_us = terms.ticks_per_us;
}

void RollWindow(LeaseState* state, const LeaseTerms& terms, WindowBounds window, int64_t now_us) {
  if (state->window.end_us <= now_us) {
    state->level = 0;
    state->window = window;
  } else if (state->fence != terms.fence || state->window.start_us > now_us + kHealSlackUs) {
    state->window = window;  // What was counted stays counted.
  }  // Else it is this window, or a later one, which stays: the clock went back a little.
}

// Brings the state to `now_us` under `terms`. What it does for one instant and then for a later one
// it does for the later one alone as well, so that nothing need be written when nothing is charged.
void Advance(LeaseState* state, const LeaseTerms& terms, WindowBounds window, int64_t now_us) {
  if (state->fence == 0) *state = {.born_us = now_us, .base_us = now_us};
  Heal(state, now_us);
  Expire(state, now_us);
  Decay(state, now_us);
  if (state->fence != terms.fence) Carry(state, terms);
  if (terms.window) RollWindow(state, terms, window, now_us);
  state->fence = terms.fence;
}

// Ticks: the shared capacity. Below 0 where holders under another definition may hold more than the
// whole; how far below matters to nobody.
int64_t Capacity(const LeaseState& state, const LeaseTerms& terms) {
  constexpr Int128 kLeast = -(Int128{1} << 51);
  const Int128 ticks = Int128{terms.burst - ReserveUnits(state)} * terms.ticks_per_unit;
  return static_cast<int64_t>(std::max(ticks, kLeast));
}
int64_t AvailableUnits(const LeaseState& state, const LeaseTerms& terms) {
  return core::FloorDiv64(Capacity(state, terms) - state.level, terms.ticks_per_unit);
}

// Until `level` has come down to `wanted`.
int64_t WaitUs(const LeaseState& state, const LeaseTerms& terms, int64_t wanted, int64_t now_us) {
  if (state.level <= wanted) return 0;
  if (terms.window) return state.window.end_us - now_us;
  return CeilDiv64(state.level - wanted, terms.ticks_per_us) + state.base_us - now_us;
}

int64_t LastUntil(const LeaseState& state, int64_t now_us) {
  int64_t last_us = now_us;
  for (const Holder& holder : state.holders) {
    last_us = std::max(last_us, holder.until_us);
  }
  return last_us;
}

// Moves the allotment towards what the holder wants and its share allows.
void Adapt(LeaseState* state, const LeaseTerms& terms, Holder* holder, int64_t left, int64_t want) {
  const int64_t holders = static_cast<int64_t>(state->holders.size());
  const int64_t half = terms.burst / 2;
  const int64_t share = half / holders;
  const int64_t target = std::clamp<int64_t>(want, 0, share);
  int64_t allotment = holder->allotment;
  if (left > allotment) {
    allotment = left;  // After a failover the holder may know more than the state.
  } else if (target > allotment) {
    int64_t others = 0;
    for (const Holder& other : state->holders) {
      others += other.id == holder->id ? 0 : other.allotment;
    }
    const int64_t room = std::max<int64_t>(half - others - allotment, 0);
    const int64_t available = std::max<int64_t>(AvailableUnits(*state, terms), 0);
    allotment += std::min({target - allotment, room, available / (2 * holders)});
  } else if (allotment > share || 2 * target <= allotment) {
    allotment = std::max(target, left);  // Seldom: each time costs what is let go.
  }
  SetAllotment(state, holder, allotment, terms.reserved);
}

TakeReply Judge(const LeaseState& state, const LeaseTerms& terms, int64_t cost, int64_t now_us) {
  TakeReply reply;
  const int64_t capacity = Capacity(state, terms);
  reply.remaining = std::max<int64_t>(AvailableUnits(state, terms), 0);
  reply.reset_us = WaitUs(state, terms, 0, now_us);
  if (cost == 0) {
    reply.allowed = true;
  } else if (cost > terms.burst) {
    reply.retry_us = core::kNever;
  } else if (cost > terms.burst - ReserveUnits(state)) {
    // Once every lease has run out, what is available has risen at the rate r from what it is now.
    const int64_t wanted = capacity - cost * terms.ticks_per_unit;
    const int64_t wait_us =
        CeilDiv64(state.level - wanted, terms.ticks_per_us) + state.base_us - now_us;
    reply.retry_us = std::max(wait_us, LastUntil(state, now_us) - now_us);
  } else {
    reply.retry_us = WaitUs(state, terms, capacity - cost * terms.ticks_per_unit, now_us);
    reply.allowed = reply.retry_us == 0;
  }
  return reply;
}

// A reply that refuses to act on a request.
Grant Refusal(GrantStatus status, const RefillRequest& request) {
  return {.status = status,
          .number = request.number,
          .since_us = request.since_us,
          .retry_us = request.term_us / 4};
}

auto Find(LeaseState* state, uint64_t id) {
  return std::ranges::find(state->holders, id, &Holder::id);
}

}  // namespace

int64_t ReserveUnits(const LeaseState& state) {
  int64_t units = 0;
  for (const Holder& holder : state.holders) {
    units += holder.reserved ? holder.allotment : 0;
  }
  return units;
}

Grant Refill(LeaseState* state, const LeaseTerms& terms, const RefillRequest& request,
             const Windows& windows, int64_t now_us) {
  const std::optional<WindowBounds> window = WindowAt(terms, windows, now_us);
  if (!window) return Refusal(GrantStatus::kOtherWindow, request);
  LeaseState next = *state;
  Advance(&next, terms, *window, now_us);
  auto holder = Find(&next, request.holder);
  const bool registered = holder != next.holders.end();
  if (registered && request.number <= holder->number) {
    return Refusal(GrantStatus::kStale, request);
  }
  if (next.drain_until_us > now_us) return Refusal(GrantStatus::kDraining, request);
  if (!registered) {
    if (next.holders.size() >= kMaxHolders) return Refusal(GrantStatus::kNoRoom, request);
    next.holders.push_back({.id = request.holder, .reserved = terms.reserved, .since_us = now_us});
    holder = std::prev(next.holders.end());
  }
  const bool known = registered && holder->since_us == request.since_us;
  if (registered && request.applied < holder->number) GiveUnits(&next, holder->granted);
  if (registered && !known) holder->since_us = std::max(now_us, holder->since_us + 1);
  const int64_t left = known ? request.left : 0;

  Adapt(&next, terms, &*holder, left, request.want);
  const int64_t holders = static_cast<int64_t>(next.holders.size());
  const int64_t room = holder->allotment - left;
  const int64_t available = std::max<int64_t>(AvailableUnits(next, terms), 0);
  const int64_t units =
      std::min({room, available, std::max<int64_t>(available / (2 * holders), 1)});
  next.level += units * terms.ticks_per_unit;
  holder->number = request.number;
  holder->granted = units;
  holder->until_us = now_us + request.term_us;
  if (terms.window) holder->until_us = std::min(holder->until_us, next.window.end_us);

  Grant grant{.number = request.number,
              .since_us = holder->since_us,
              .units = units,
              .allotment = holder->allotment,
              .lasts_us = holder->until_us - now_us,
              .holders = holders,
              .available = std::max<int64_t>(AvailableUnits(next, terms), 0),
              .reset_us = WaitUs(next, terms, 0, now_us)};
  if (units == 0 && room > 0) {
    grant.retry_us = WaitUs(next, terms, Capacity(next, terms) - terms.ticks_per_unit, now_us);
  } else if (holder->allotment == 0) {
    grant.retry_us = request.term_us / 4;  // Others hold it all; their shares shrink as they renew.
  }
  *state = std::move(next);
  return grant;
}

bool GiveBack(LeaseState* state, const LeaseTerms& terms, const GiveBackRequest& request,
              const Windows& windows, int64_t now_us) {
  const std::optional<WindowBounds> window = WindowAt(terms, windows, now_us);
  if (!window) return false;
  LeaseState next = *state;
  Advance(&next, terms, *window, now_us);
  const auto holder = Find(&next, request.holder);
  // Its registration was never answered: it holds nothing, and will not.
  const bool nothing_known = request.since_us == 0 && request.left == 0;
  if (holder == next.holders.end() || request.number <= holder->number ||
      (request.since_us != holder->since_us && !nothing_known)) {
    return false;
  }
  const int64_t unapplied = request.applied < holder->number ? holder->granted : 0;
  const int64_t units = std::min(request.left + unapplied, holder->allotment);
  SetAllotment(&next, &*holder, 0, false);
  GiveUnits(&next, units);
  next.holders.erase(holder);
  *state = std::move(next);
  return true;
}

TakeReply Take(LeaseState* state, const LeaseTerms& terms, int64_t cost, const Windows& windows,
               int64_t now_us) {
  const std::optional<WindowBounds> window = WindowAt(terms, windows, now_us);
  if (!window) return {.other_window = true};
  LeaseState next = *state;
  Advance(&next, terms, *window, now_us);
  TakeReply reply = Judge(next, terms, cost, now_us);
  if (reply.allowed && cost > 0) {
    next.level += cost * terms.ticks_per_unit;
    reply.remaining = std::max<int64_t>(AvailableUnits(next, terms), 0);
    reply.reset_us = WaitUs(next, terms, 0, now_us);
    reply.receipt = {.a = terms.window ? next.window.start_us : cost,
                     .b = static_cast<int64_t>(terms.fence),
                     .at_ns = next.base_us * 1000};
    *state = std::move(next);
  } else if (!reply.allowed && cost <= terms.burst && cost > terms.burst - ReserveUnits(next) &&
             next.drain_until_us <= now_us) {
    const int64_t last_us = LastUntil(next, now_us);
    next.drain_until_us = last_us + (last_us - now_us);
    *state = std::move(next);
  }
  return reply;
}

TakeReply Peek(LeaseState state, const LeaseTerms& terms, int64_t cost, const Windows& windows,
               int64_t now_us) {
  const std::optional<WindowBounds> window = WindowAt(terms, windows, now_us);
  if (!window) return {.other_window = true};
  Advance(&state, terms, *window, now_us);
  return Judge(state, terms, cost, now_us);
}

bool PutBack(LeaseState* state, const LeaseTerms& terms, core::Receipt receipt, int64_t units,
             const Windows& windows, int64_t now_us) {
  const std::optional<WindowBounds> window = WindowAt(terms, windows, now_us);
  if (!window || receipt.b != static_cast<int64_t>(terms.fence)) return false;
  LeaseState next = *state;
  Advance(&next, terms, *window, now_us);
  if (receipt.at_ns / 1000 < next.born_us) return false;
  Int128 ticks = Int128{units} * terms.ticks_per_unit;
  if (!terms.window) {
    const int64_t elapsed_us = std::max<int64_t>(next.base_us - receipt.at_ns / 1000, 0);
    // As if time had given back this charge before all others. (The level just after the charge,
    // less the time since, would be too much: it forgets what was put back of earlier charges.)
    ticks = std::min(
        ticks, Int128{receipt.a} * terms.ticks_per_unit - Int128{elapsed_us} * terms.ticks_per_us);
  } else if (receipt.a != next.window.start_us) {
    return false;
  }
  ticks = std::min<Int128>(ticks, next.level);
  if (ticks <= 0) return false;
  next.level -= static_cast<int64_t>(ticks);
  *state = std::move(next);
  return true;
}

void Post(LeaseState* state, const LeaseTerms& terms, int64_t units, const Windows& windows,
          int64_t now_us) {
  const std::optional<WindowBounds> window = WindowAt(terms, windows, now_us);
  if (!window) return;
  Advance(state, terms, *window, now_us);
  state->level = SaturatedLevel(state->level + Int128{units} * terms.ticks_per_unit);
}

int64_t KeepUs(const LeaseState& state, int64_t now_us) {
  const int64_t last_us = std::max({LastUntil(state, now_us), state.drain_until_us, state.base_us});
  if (state.ticks_per_us == 0) return std::max(last_us, state.window.end_us) - now_us;
  const int64_t level =
      SaturatedLevel(state.level + Int128{ReserveUnits(state)} * state.ticks_per_unit);
  return last_us - now_us + CeilDiv64(level, state.ticks_per_us);
}

}  // namespace weir::store::lease
