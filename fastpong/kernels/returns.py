"""Returns and advantages: discounted sums that begin anew at every point."""

from fastpong.arrays import F32, I8, I64
from fastpong.kernels.compile.jit import kernel

POINT, GAME = 0, 1


@kernel
def finished_rows(
    rewards: I8,  # (rows, envs)
    ended: I8,  # (rows, envs)
    begins: I64,  # (envs,) first row of each env that is not used yet
    rows: int,  # rows filled
    unit: int,  # POINT or GAME: what may not be cut
    ends: I64,  # (envs,) out: row after the last finished point or game; = begins if there is none
) -> int:
    """Find out which rows of each env are finished; return an upper bound of the number of samples.

    Twin: naive.finished_samples.
    """
    total = 0
    for n in range(rewards.shape[1]):
        ends[n] = begins[n]
        for t in range(rows - 1, begins[n] - 1, -1):
            if ended[t, n] or (unit == POINT and rewards[t, n] != 0):
                ends[n] = t + 1
                break
        total += ends[n] - begins[n]
    return total


@kernel
def discounted_returns(
    rewards: I8,  # (rows, envs)
    ended: I8,  # (rows, envs)
    begins: I64,  # (envs,)
    ends: I64,  # (envs,)
    gamma: float,  # discount factor per step
    samples: I64,  # (≥ Σ ends − begins,) out: indices t · envs + n, env by env, t ascending
    returns: F32,  # (≥ …,) out: return of each sample
    game_ids: I64,  # (≥ …,) out: number of the game in the batch that each sample belongs to, ascending
) -> int:
    """Compute the returns of finished points, R_t = r_t + γ R_{t+1}, and return how many samples they are.

    The sum begins anew at every point. Steps of a point that nobody won, because the game was cut off at its frame
    limit, are left out. Twin: naive.returns, naive.finished_samples.
    """
    envs = rewards.shape[1]
    count = 0
    game = -1  # of the present row; rows are visited backwards, so each env first jumps to its last game
    for n in range(envs):
        scored = False
        size = finished_games = 0
        for t in range(ends[n] - 1, begins[n] - 1, -1):
            scored = rewards[t, n] != 0 or (scored and not ended[t, n])
            size += scored
            finished_games += ended[t, n]
        last = game + finished_games + 1
        game = last
        scored = False
        running = 0.0
        at = count + size
        for t in range(ends[n] - 1, begins[n] - 1, -1):
            game -= ended[t, n]
            scored = rewards[t, n] != 0 or (scored and not ended[t, n])
            running = float(rewards[t, n]) if rewards[t, n] != 0 else gamma * running
            if scored:
                at -= 1
                samples[at] = t * envs + n
                returns[at] = running
                game_ids[at] = game
        game = last
        count += size
    return count


@kernel
def standardise(
    values: F32,  # (m,) in and out
    game_ids: I64,  # (m,) ascending; each sequence of equal numbers is standardised by itself
) -> None:
    """Give the samples of each game mean 0 and, unless all are equal, standard deviation 1 (float64 sums).

    Twin: naive.standardise.
    """
    begin = 0
    while begin < len(values):
        end = begin
        total = 0.0
        while end < len(values) and game_ids[end] == game_ids[begin]:
            total += values[end]
            end += 1
        mean = total / (end - begin)
        square = 0.0
        for i in range(begin, end):
            square += (values[i] - mean) ** 2
        deviation = (square / (end - begin)) ** 0.5
        scale = 1.0 / deviation if deviation > 1e-8 else 0.0
        for i in range(begin, end):
            values[i] = (values[i] - mean) * scale
        begin = end


@kernel
def advantages_of(
    rewards: I8,  # (rows, envs)
    ended: I8,  # (rows, envs)
    values: F32,  # (rows + 1, envs) the last row is the state after the last step
    gamma: float,  # discount factor per step
    gae_lambda: float,  # λ, the decay of the weights of longer returns, for the advantages
    return_lambda: float,  # the same for the returns
    advantages: F32,  # (rows, envs) out
    returns: F32,  # (rows, envs) out: what the value should have been
) -> None:
    """Estimate advantages with GAE (Schulman et al., "High-dimensional continuous control", 2016, equation 16).

    A point ends an episode here: nothing after it is credited to what came before. The returns have a λ of their own,
    as in Yuan et al., "What's behind PPO's collapse in long-CoT", 2025 (decoupled GAE): the nearer it is to 1, the
    sooner the value learns what rare shots are worth. Twin: naive.advantages_of.
    """
    rows, envs = rewards.shape
    for n in range(envs):
        running = longer = 0.0
        for t in range(rows - 1, -1, -1):
            over = rewards[t, n] != 0 or ended[t, n] != 0
            after = 0.0 if over else float(values[t + 1, n])
            delta = rewards[t, n] + gamma * after - values[t, n]
            running = delta + (0.0 if over else gamma * gae_lambda * running)
            longer = delta + (0.0 if over else gamma * return_lambda * longer)
            advantages[t, n] = running
            returns[t, n] = longer + values[t, n]
